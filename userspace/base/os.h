// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The seam to the operating system: every system call of userspace/kfd and userspace/plugin is made through one of
// these functions, so that a test can let each of them fail. They take what the call of the same name takes, return
// what it returns and set errno. A program links one of two implementations: os.cc, which makes the call and nothing
// else, or os_failing.cc, which counts the calls and lets one of them fail (os_failing.h). Not here: retries, messages,
// owners of what a call returns.
#pragma once

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

struct iovec;
struct msghdr;
struct pollfd;
struct rlimit;
struct sigaction;
struct stat;
struct statvfs;
struct timespec;

namespace os {

// For a library that makes system calls of its own: the errno with which a test wants this call to fail, which its
// caller must then not make; 0 with os.cc.
[[nodiscard]] int fault(const char* call);

// Files.
int open(const char* path, int flags, mode_t mode = 0);
int openat(int dir, const char* path, int flags, mode_t mode = 0);
ssize_t read(int fd, void* out, std::size_t size);
ssize_t pread(int fd, void* out, std::size_t size, off_t offset);
ssize_t pwrite(int fd, const void* bytes, std::size_t size, off_t offset);
int fsync(int fd);
int ftruncate(int fd, off_t length);
int fcntl(int fd, int command, int argument = 0);
int dup2(int fd, int number);
int ioctl(int fd, unsigned long request, void* argument);
int fchmod(int fd, mode_t mode);
int fchown(int fd, uid_t uid, gid_t gid);
int flock(int fd, int operation);
int fstat(int fd, struct ::stat* status);
int fstatvfs(int fd, struct ::statvfs* status);

// Names of files.
int access(const char* path, int mode);
int faccessat(int dir, const char* path, int mode, int flags);
int stat(const char* path, struct ::stat* status);
int fstatat(int dir, const char* path, struct ::stat* status, int flags);
int link(const char* path, const char* name);
int linkat(int from_dir, const char* from, int to_dir, const char* to, int flags);
int mknodat(int dir, const char* path, mode_t mode, dev_t device);
ssize_t readlink(const char* path, char* out, std::size_t size);
int renameat(int from_dir, const char* from, int to_dir, const char* to);
int unlink(const char* path);
int unlinkat(int dir, const char* path, int flags);

// Directories. readdir() leaves errno alone at the end of the directory.
DIR* opendir(const char* path);
DIR* fdopendir(int fd);
dirent* readdir(DIR* dir);

// Memory.
void* mmap(void* address, std::size_t size, int protection, int flags, int fd, off_t offset);
ssize_t getrandom(void* out, std::size_t size, unsigned flags);

// Processes.
int getrlimit(int resource, struct ::rlimit* limit);
int setrlimit(int resource, const struct ::rlimit* limit);
pid_t fork();
// As fork(), but the child has the caller's table of descriptors, the caller gets no signal at its end and waits for it
// with __WALL, and it has the given pid; 0: any.
pid_t fork_sharing_files(pid_t pid);
pid_t waitpid(pid_t pid, int* status, int options);
int poll(struct ::pollfd* files, unsigned long count, int limit_ms);
// Answers an error as its result and leaves errno alone, like the function of the C library.
int pthread_create(pthread_t* thread, void* (*start)(void*), void* argument);
int kill(pid_t pid, int signal);
long kcmp(pid_t first, pid_t second, int type, unsigned long first_index, unsigned long second_index);
ssize_t process_vm_readv(pid_t pid, const ::iovec* local, unsigned long local_count, const ::iovec* remote,
                         unsigned long remote_count);
int pidfd_open(pid_t pid, unsigned flags);
int pidfd_getfd(int pidfd, int number, unsigned flags);

// Sockets.
int socketpair(int domain, int type, int protocol, int sockets[2]);
ssize_t sendmsg(int socket, const struct ::msghdr* message, int flags);
ssize_t recvmsg(int socket, struct ::msghdr* message, int flags);
int setsockopt(int socket, int level, int option, const void* value, unsigned size);

// A mount that has no place in the tree of files.
int fsopen(const char* type, unsigned flags);
int fsconfig(int fd, unsigned command, const char* key, const void* value, int number);
int fsmount(int fd, unsigned flags, unsigned attributes);

// What gives something back, or cannot fail. No test lets these fail: Linux has closed a descriptor and ended a mapping
// whatever it answers, and there is nothing that a caller could do.
int close(int fd);
int closedir(DIR* dir);
int munmap(void* address, std::size_t size);
int sigaction(int signal, const struct ::sigaction* action, struct ::sigaction* old);
int pthread_join(pthread_t thread);
int pthread_sigmask(int how, const ::sigset_t* set, ::sigset_t* old);
int nanosleep(const struct ::timespec* time);
// Advice, on which nothing depends but speed.
int posix_fadvise(int fd, off_t offset, off_t length, int advice);
int sync_file_range(int fd, off_t offset, off_t length, unsigned flags);
int get_nprocs();
pid_t getpid();
pid_t gettid();

}  // namespace os
