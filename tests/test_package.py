# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The amdkfd-criu authors
"""What `make install` and `make deb-plugin` leave: files, modes, configuration, and a plugin that loads from there."""
from __future__ import annotations

import fcntl
import gzip
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from harness import paths

pytestmark = pytest.mark.tier("unit")

PACKAGE = paths.SCRIPTS / "package.py"
NAME = "amdkfd-criu-plugin"
PLUGIN = "usr/lib/criu/amdgpu_plugin.so"
DEFAULT_CONF = "etc/criu/default.conf"
PLUGIN_CONF = "etc/criu/amdgpu-plugin.conf"
FILES = {
    PLUGIN: 0o644,
    PLUGIN_CONF: 0o644,
    "{prefix}/bin/kfd-criu": 0o755,
    "{prefix}/share/man/man1/kfd-criu.1.gz": 0o644,
    "{prefix}/share/man/man7/amdgpu_plugin.7.gz": 0o644,
    "{prefix}/share/doc/" + NAME + "/copyright": 0o644,
    "{prefix}/share/doc/" + NAME + "/image-format.md": 0o644,
    "{prefix}/share/doc/" + NAME + "/what-comes-back.md": 0o644,
    "{prefix}/share/doc/" + NAME + "/performance.md": 0o644,
    "{prefix}/share/doc/" + NAME + "/plugin-speed.svg": 0o644,
    "{prefix}/share/doc/" + NAME + "/amdgpu.proto": 0o644,
    "{prefix}/share/doc/" + NAME + "/examples/runc.conf": 0o644,
    "{prefix}/share/doc/" + NAME + "/examples/crun.conf": 0o644,
    "{prefix}/share/" + NAME + "/default.conf": 0o644,
}


def run(*words: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end; its status is the caller's business."""
    return subprocess.run([str(word) for word in words], check=False, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})


def install(destdir: Path, *words: str) -> None:
    """Installs below a folder."""
    done = run(PACKAGE, "install", "--no-build", "--destdir", destdir, *words)
    assert done.returncode == 0, done.stdout + done.stderr


def modes(root: Path) -> dict[str, int]:
    """All files below a folder, with their modes."""
    return {str(file.relative_to(root)): file.stat().st_mode & 0o7777 for file in root.rglob("*") if file.is_file()}


def expected(prefix: str) -> dict[str, int]:
    """The files of an installation with this prefix."""
    return {name.format(prefix=prefix): mode for name, mode in FILES.items()}


def loads(plugin: Path, tmp_path: Path) -> None:
    """The plugin has to load in stand-ins for an old and a new CRIU, and to leave a file alone that is no GPU's."""
    images = tmp_path / "images"
    images.mkdir()
    for hooks in (10, 15):
        done = run(paths.built("release") / f"plugin/plugin_load_host_{hooks}", plugin, images)
        assert done.returncode == 0 and f"max_hooks {hooks}\ninit 0\ndump_ext_file -95\n" in done.stdout, done.stdout


@pytest.fixture(name="deb", scope="module")
def fixture_deb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Tests of this file may run in several processes, and each makes the package in the same place.
    with (paths.OUT / "package-test.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = run(PACKAGE, "deb", "--no-build")
        assert done.returncode == 0, done.stderr
        files = done.stdout.split()
        assert len(files) == 1 and Path(files[0]).name.startswith(f"{NAME}_"), files
        return Path(shutil.copy(files[0], tmp_path_factory.mktemp("package")))


@pytest.fixture(name="unpacked", scope="module")
def fixture_unpacked(deb: Path) -> Path:
    root = deb.parent / "root"
    assert run("dpkg-deb", "--raw-extract", deb, root).returncode == 0
    return root


# ---- make install ----------------------------------------------------------------------


def test_an_installation_has_these_files(tmp_path: Path) -> None:
    install(tmp_path)
    assert modes(tmp_path) == {**expected("usr/local"), DEFAULT_CONF: 0o644}


def test_the_prefix_is_that_of_all_but_crius_own_folders(tmp_path: Path) -> None:
    install(tmp_path, "--prefix", "/opt/it")
    assert modes(tmp_path) == {**expected("opt/it"), DEFAULT_CONF: 0o644}


@pytest.mark.parametrize("name", [DEFAULT_CONF, PLUGIN_CONF])
def test_an_existing_configuration_is_left_alone(tmp_path: Path, name: str) -> None:
    config = tmp_path / name
    config.parent.mkdir(parents=True)
    config.write_text("tcp-established\n")
    install(tmp_path)
    install(tmp_path)
    assert config.read_text() == "tcp-established\n"


def test_the_installed_plugin_loads(tmp_path: Path) -> None:
    install(tmp_path / "root")
    loads(tmp_path / "root" / PLUGIN, tmp_path)


def test_criu_finds_nothing_but_the_plugin_in_its_folder(tmp_path: Path) -> None:
    install(tmp_path)
    assert [file.name for file in (tmp_path / PLUGIN).parent.iterdir()] == ["amdgpu_plugin.so"]


@pytest.mark.parametrize("words", [(), ("nothing",), ("install", "--prefix"), ("install", "--destdir", "relative"),
                                   ("deb", "--nothing")])
def test_a_wrong_command_line_is_refused(words: tuple[str, ...]) -> None:
    assert run(PACKAGE, *words).returncode == 64


# ---- the Debian package ----------------------------------------------------------------


def test_the_package_has_the_files_of_an_installation_in_usr(unpacked: Path) -> None:
    files = {name: mode for name, mode in modes(unpacked).items() if not name.startswith("DEBIAN/")}
    assert files == expected("usr")


def test_the_package_belongs_to_root(deb: Path) -> None:
    lines = run("dpkg-deb", "--contents", deb).stdout.splitlines()
    assert lines and all(line.split()[1] == "root/root" for line in lines), lines
    folders = [line.split() for line in lines if line.startswith("d")]
    assert folders and all(words[0] == "drwxr-xr-x" for words in folders), folders


def test_dpkg_asks_before_it_replaces_the_plugins_options(unpacked: Path) -> None:
    assert (unpacked / "DEBIAN/conffiles").read_text().split() == [f"/{PLUGIN_CONF}"]


def test_the_package_depends_on_criu_and_on_the_plugins_libraries(deb: Path) -> None:
    depends = run("dpkg-deb", "--field", deb, "Depends").stdout
    for package in ("criu (>= 3.17.1)", "libprotobuf-lite", "libdrm-amdgpu1", "liblz4-1", "libc6"):
        assert package in depends, depends


def test_the_packaged_plugin_loads(unpacked: Path, tmp_path: Path) -> None:
    loads(unpacked / PLUGIN, tmp_path)


def test_the_packaged_tool_runs(unpacked: Path, tmp_path: Path) -> None:
    done = run(unpacked / "usr/bin/kfd-criu", "verify", tmp_path)
    assert done.returncode == 2 and "has no image of the plugin" in done.stderr, done.stderr


def test_no_file_of_the_package_is_one_of_the_installed_criu(unpacked: Path) -> None:
    owned = set(run("dpkg", "--listfiles", "criu").stdout.split())
    assert "/usr/sbin/criu" in owned, "needs the Debian package criu"
    assert not owned & {f"/{name}" for name in modes(unpacked)}


def maintain(unpacked: Path, script: str, action: str, root: Path, *more: str) -> str:
    """Runs a maintainer script for a folder that stands for /; returns what it says. `more`: arguments after the action."""
    shutil.copytree(unpacked / "usr/share", root / "usr/share", dirs_exist_ok=True)
    done = run(unpacked / "DEBIAN" / script, action, *more, env={"DPKG_ROOT": str(root)})
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_installing_makes_crius_configuration_and_purging_removes_it(unpacked: Path, tmp_path: Path) -> None:
    assert maintain(unpacked, "postinst", "configure", tmp_path) == ""
    config = tmp_path / DEFAULT_CONF
    assert [line for line in config.read_text().splitlines() if line and line[0] != "#"] == ["link-remap"]
    assert config.stat().st_mode & 0o777 == 0o644
    maintain(unpacked, "postrm", "remove", tmp_path)
    assert config.exists()
    maintain(unpacked, "postrm", "purge", tmp_path)
    assert not config.parent.exists()


def test_an_upgrade_does_not_make_a_configuration_that_was_removed(unpacked: Path, tmp_path: Path) -> None:
    assert maintain(unpacked, "postinst", "configure", tmp_path, "0.9") == ""
    assert not (tmp_path / DEFAULT_CONF).exists()


def test_installing_leaves_a_link_that_points_nowhere(unpacked: Path, tmp_path: Path) -> None:
    config = tmp_path / DEFAULT_CONF
    config.parent.mkdir(parents=True)
    config.symlink_to("missing/place")
    maintain(unpacked, "postinst", "configure", tmp_path)
    assert config.is_symlink() and not config.exists()


def test_purging_leaves_a_changed_configuration(unpacked: Path, tmp_path: Path) -> None:
    maintain(unpacked, "postinst", "configure", tmp_path)
    config = tmp_path / DEFAULT_CONF
    config.write_text(config.read_text() + "tcp-established\n")
    maintain(unpacked, "postrm", "purge", tmp_path)
    assert config.exists()


@pytest.mark.parametrize("text, says", [("tcp-established\n", True), ("# link-remap\n", True), ("link-remap\n", False)])
def test_installing_leaves_an_existing_configuration_and_says_what_it_lacks(
        unpacked: Path, tmp_path: Path, text: str, says: bool) -> None:
    config = tmp_path / DEFAULT_CONF
    config.parent.mkdir(parents=True)
    config.write_text(text)
    assert ("has no line 'link-remap'" in maintain(unpacked, "postinst", "configure", tmp_path)) == says
    assert config.read_text() == text


# ---- manuals -----------------------------------------------------------------------------


@pytest.mark.parametrize("page", sorted((paths.ROOT / "packaging/man").iterdir()), ids=lambda page: page.name)
def test_a_manual_is_formatted_without_a_warning(page: Path) -> None:
    done = run("groff", "-man", "-Tutf8", "-ww", "-z", page)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_the_installed_manuals_are_compressed_without_a_time(unpacked: Path) -> None:
    pages = list((unpacked / "usr/share/man").rglob("*.gz"))
    assert pages
    for page in pages:
        assert page.read_bytes()[4:8] == bytes(4)
        assert gzip.decompress(page.read_bytes()) == (paths.ROOT / "packaging/man" / page.stem).read_bytes()


def options_of_the_plugin() -> dict[str, str]:
    """The names of the plugin's options, and their variables in the environment."""
    source = (paths.ROOT / "userspace/plugin/options.cc").read_text()
    return dict(re.findall(r'Row\{"([a-z-]+)",\s*"(AMDGPU_PLUGIN_[A-Z_]+)"', source))


def test_the_manual_has_every_option_of_the_plugin() -> None:
    text = (paths.ROOT / "packaging/man/amdgpu_plugin.7").read_text().replace("\\-", "-")
    assert len(options_of_the_plugin()) >= 5
    assert set(re.findall(r"^\.BR ([a-z-]+) = ", text, re.M)) == set(options_of_the_plugin())
    assert {name: name.upper().replace("-", "_") for name in options_of_the_plugin()} == {
        name: variable.removeprefix("AMDGPU_PLUGIN_") for name, variable in options_of_the_plugin().items()}


def test_the_installed_options_are_comments_and_name_every_option_of_the_plugin() -> None:
    lines = (paths.ROOT / "packaging/criu/amdgpu-plugin.conf").read_text().splitlines()
    assert all(line.startswith("#") for line in lines)
    assert sorted(line[1:].partition("=")[0] for line in lines if re.match("#[a-z-]+=", line)) == sorted(
        options_of_the_plugin())
