// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Files of the extensible ABI: a pause, which ends when its file is closed, and
 * the file that RESUME returns to a caller who does not want to wait. Both tell
 * by poll() when the queues of the process run.
 *
 * A file has no reference to the process, because a process that has exited must
 * give up its queues and its memory at once, even if files about it are open.
 *
 * Locks: kfd_criu_files_lock protects the link between files and processes.
 * kfd_criu_file.paused is protected by the mutex of the process, except in
 * release(): only operations that have a reference to the file change it.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include "kfd_criu.h"
#include "kfd_priv.h"

/*
 * While a process may poll a file, the driver looks whether the queues run: at
 * first after FIRST_MS, and then each time after twice as long, up to LAST_MS.
 */
#define KFD_CRIU_WATCH_FIRST_MS	1
#define KFD_CRIU_WATCH_LAST_MS	64
/* How long close() waits for an operation of the process before a worker does. */
#define KFD_CRIU_CLOSE_LIMIT	msecs_to_jiffies(100)

static DEFINE_SPINLOCK(kfd_criu_files_lock);

/**
 * struct kfd_criu_file - a pause, or what RESUME returns
 * @list: entry in a list of struct kfd_criu_session; not in a list without @p
 * @p: the process; NULL: it has exited
 * @paused: the file is a pause that has not ended
 * @saves_drm_objects: whoever paused saves the objects of render nodes
 * @ended: it is none any more; POLLHUP
 * @events: POLLIN once the queues run, or POLLERR if they never will
 * @delay_ms: time until @watch runs again, in milliseconds
 * @watch: looks whether the queues run
 * @wq: waits for @ended and @events
 */
struct kfd_criu_file {
	struct list_head list;
	struct kfd_process *p;
	bool paused;
	bool saves_drm_objects;
	bool ended;
	__poll_t events;
	unsigned int delay_ms;
	struct delayed_work watch;
	wait_queue_head_t wq;
};

/* Returns the process, for kfd_unref_process(); NULL if it has exited. */
static struct kfd_process *kfd_criu_file_get_process(struct kfd_criu_file *cf)
{
	struct kfd_process *p;

	spin_lock(&kfd_criu_files_lock);
	p = cf->p;
	if (p && !kref_get_unless_zero(&p->ref))
		p = NULL;
	spin_unlock(&kfd_criu_files_lock);
	return p;
}

/* The caller holds kfd_criu_files_lock. Nothing follows the exit of the process. */
static void kfd_criu_file_report_locked(struct kfd_criu_file *cf,
					__poll_t events)
{
	if (cf->events != EPOLLERR)
		WRITE_ONCE(cf->events, events);
	wake_up_all(&cf->wq);
}

static void kfd_criu_file_report(struct kfd_criu_file *cf, __poll_t events)
{
	spin_lock(&kfd_criu_files_lock);
	kfd_criu_file_report_locked(cf, events);
	spin_unlock(&kfd_criu_files_lock);
}

static void kfd_criu_file_watch_fn(struct work_struct *work)
{
	struct kfd_criu_file *cf = container_of(to_delayed_work(work),
						struct kfd_criu_file, watch);
	struct kfd_process *p = kfd_criu_file_get_process(cf);
	const int r = p ? kfd_criu_check_running(p) : -ESRCH;

	if (p)
		kfd_unref_process(p);
	if (!r) {
		kfd_criu_file_report(cf, EPOLLIN);
	} else if (r == -ESRCH) {
		kfd_criu_file_report(cf, EPOLLERR);
	} else {
		cf->delay_ms = min(2 * cf->delay_ms, KFD_CRIU_WATCH_LAST_MS);
		schedule_delayed_work(&cf->watch,
				      msecs_to_jiffies(cf->delay_ms));
	}
}

static void kfd_criu_file_start_watch(struct kfd_criu_file *cf)
{
	cf->delay_ms = KFD_CRIU_WATCH_FIRST_MS;
	schedule_delayed_work(&cf->watch, 0);
}

static __poll_t kfd_criu_file_poll(struct file *file, poll_table *wait)
{
	struct kfd_criu_file *cf = file->private_data;

	poll_wait(file, &cf->wq, wait);
	return READ_ONCE(cf->events) | (READ_ONCE(cf->ended) ? EPOLLHUP : 0);
}

/* The caller holds the mutex of @p, or @p is NULL. */
static int kfd_criu_file_end_pause(struct kfd_criu_file *cf,
				   struct kfd_process *p)
{
	int r;

	if (!cf->paused)
		return -EINVAL;
	cf->paused = false;
	r = kfd_criu_end_pause(p);
	WRITE_ONCE(cf->ended, true);
	wake_up_all(&cf->wq);
	return r;
}

static void kfd_criu_file_free(struct kfd_criu_file *cf)
{
	spin_lock(&kfd_criu_files_lock);
	list_del_init(&cf->list);
	cf->p = NULL;
	spin_unlock(&kfd_criu_files_lock);
	cancel_delayed_work_sync(&cf->watch);
	kfree(cf);
}

/* Frees the file of a pause. The caller has locked @p and has a reference to it. */
static void kfd_criu_file_finish(struct kfd_criu_file *cf,
				 struct kfd_process *p)
{
	kfd_criu_file_end_pause(cf, p);
	mutex_unlock(&p->mutex);
	kfd_criu_file_free(cf);
	kfd_unref_process(p);
}

/**
 * kfd_criu_files_end_work_fn - end the pauses of files that were closed while an
 * operation of their process was in progress
 * @work: kfd_criu_session.end_work
 */
void kfd_criu_files_end_work_fn(struct work_struct *work)
{
	struct kfd_process *p = container_of(work, struct kfd_process,
					     criu.end_work);
	struct kfd_criu_file *cf, *next;
	LIST_HEAD(closed);

	mutex_lock(&p->mutex);
	spin_lock(&kfd_criu_files_lock);
	list_splice_init(&p->criu.closed_files, &closed);
	spin_unlock(&kfd_criu_files_lock);
	list_for_each_entry(cf, &closed, list)
		kfd_criu_file_end_pause(cf, p);
	mutex_unlock(&p->mutex);
	list_for_each_entry_safe(cf, next, &closed, list)
		kfd_criu_file_free(cf);
	kfd_unref_process(p);
}

/*
 * Lets a worker end the pause, and takes over the reference to the process. One
 * work ends all pauses of the process: if each pause had its own, a program could
 * close so many files that the workqueue has no worker for other processes.
 */
static void kfd_criu_file_end_later(struct kfd_criu_file *cf,
				    struct kfd_process *p)
{
	spin_lock(&kfd_criu_files_lock);
	list_move(&cf->list, &p->criu.closed_files);
	spin_unlock(&kfd_criu_files_lock);
	/* A work that is queued already has a reference, and finds the file. */
	if (!queue_work(kfd_criu_end_wq, &p->criu.end_work))
		kfd_unref_process(p);
}

/*
 * A task that exits closes all of its files one after the other, and cannot be
 * killed any more.
 */
static unsigned long kfd_criu_close_limit(void)
{
	return current->flags & PF_EXITING ? 0 : KFD_CRIU_CLOSE_LIMIT;
}

static int kfd_criu_file_release(struct inode *inode, struct file *file)
{
	struct kfd_criu_file *cf = file->private_data;
	struct kfd_process *p = NULL;

	if (cf->paused)
		p = kfd_criu_file_get_process(cf);
	if (!p) {
		kfd_criu_file_free(cf);
		return 0;
	}
	/*
	 * The process may be in the middle of an operation that waits for memory
	 * of the process. The caller, which closes the file, must not wait for
	 * that, or it could not be killed.
	 */
	if (kfd_criu_lock_until(p, jiffies + kfd_criu_close_limit())) {
		kfd_criu_file_end_later(cf, p);
		return 0;
	}
	kfd_criu_file_finish(cf, p);
	return 0;
}

static const struct file_operations kfd_criu_file_fops = {
	.owner = THIS_MODULE,
	.release = kfd_criu_file_release,
	.poll = kfd_criu_file_poll,
	.llseek = noop_llseek,
};

/**
 * kfd_criu_files_report_exit - tell all files of a process that it has exited
 * @p: process that has released its mm
 *
 * The process itself lives on as long as another process has its file of
 * /dev/kfd open, such as the checkpointer that also polls the file of a pause.
 */
void kfd_criu_files_report_exit(struct kfd_process *p)
{
	struct kfd_criu_file *cf;

	spin_lock(&kfd_criu_files_lock);
	list_for_each_entry(cf, &p->criu.files, list) {
		WRITE_ONCE(cf->ended, true);
		kfd_criu_file_report_locked(cf, EPOLLERR);
	}
	spin_unlock(&kfd_criu_files_lock);
}

/**
 * kfd_criu_files_detach - make all files of a process forget it
 * @p: process that is being freed, so that no caller can get a reference
 */
void kfd_criu_files_detach(struct kfd_process *p)
{
	struct kfd_criu_file *cf, *next;

	spin_lock(&kfd_criu_files_lock);
	list_for_each_entry_safe(cf, next, &p->criu.files, list) {
		list_del_init(&cf->list);
		cf->p = NULL;
		WRITE_ONCE(cf->ended, true);
		kfd_criu_file_report_locked(cf, EPOLLERR);
	}
	spin_unlock(&kfd_criu_files_lock);
}

/*
 * Makes a file about @p. The process is not changed yet. The caller makes the
 * descriptor with fd_install(), or gives it up with kfd_criu_file_undo().
 */
static int kfd_criu_file_create(struct kfd_process *p,
				struct kfd_criu_new_file *new)
{
	struct kfd_criu_file *cf;
	int r;

	cf = kzalloc(sizeof(*cf), GFP_KERNEL_ACCOUNT);
	if (!cf)
		return -ENOMEM;
	INIT_LIST_HEAD(&cf->list);
	INIT_DELAYED_WORK(&cf->watch, kfd_criu_file_watch_fn);
	init_waitqueue_head(&cf->wq);
	new->fd = get_unused_fd_flags(O_CLOEXEC);
	if (new->fd < 0) {
		r = new->fd;
		goto err_free;
	}
	new->file = anon_inode_getfile("[kfd-criu]", &kfd_criu_file_fops, cf,
				       O_RDONLY);
	if (IS_ERR(new->file)) {
		r = PTR_ERR(new->file);
		goto err_put_fd;
	}
	cf->p = p;
	spin_lock(&kfd_criu_files_lock);
	list_add(&cf->list, &p->criu.files);
	spin_unlock(&kfd_criu_files_lock);
	return 0;

err_put_fd:
	put_unused_fd(new->fd);
err_free:
	kfree(cf);
	return r;
}

/**
 * kfd_criu_file_publish - make the descriptor of a new file usable
 * @new: file from kfd_criu_file_pause() or kfd_criu_file_resume()
 *
 * After this the descriptor belongs to the caller of the system call.
 *
 * Return: its number.
 */
int kfd_criu_file_publish(const struct kfd_criu_new_file *new)
{
	fd_install(new->fd, new->file);
	return new->fd;
}

/**
 * kfd_criu_file_undo - give up a new file, and with it the pause
 * @new: file from kfd_criu_file_pause() or kfd_criu_file_resume()
 *
 * The mutex of the process must not be held.
 */
void kfd_criu_file_undo(const struct kfd_criu_new_file *new)
{
	put_unused_fd(new->fd);
	fput(new->file);
}

/**
 * kfd_criu_file_pause - pause a process until a file is closed
 * @p: the process; its mutex is not held
 * @new: returns the file, for kfd_criu_file_publish() or kfd_criu_file_undo()
 * @saves_drm_objects: as kfd_criu_begin_pause()
 * @reason: as kfd_criu_begin_pause()
 * @measure: stores in @args how large the image will be; if it fails the pause
 *	ends
 * @args: passed to @measure
 *
 * Return: 0; -EMFILE; -ENFILE; -ENOMEM; -EINTR if the caller is killed while it
 * waits for an operation of the process; as kfd_criu_begin_pause() and @measure.
 */
int kfd_criu_file_pause(struct kfd_process *p, struct kfd_criu_new_file *new,
			bool saves_drm_objects, u32 *reason,
			int (*measure)(struct kfd_process *p, void *args),
			void *args)
{
	struct kfd_criu_file *cf;
	int r;

	r = kfd_criu_file_create(p, new);
	if (r)
		return r;
	cf = new->file->private_data;
	cf->saves_drm_objects = saves_drm_objects;
	r = mutex_lock_killable(&p->mutex);
	if (r)
		goto err_undo;
	r = kfd_criu_begin_pause(p, saves_drm_objects, reason);
	if (!r) {
		r = measure(p, args);
		if (r)
			kfd_criu_end_pause(p);
	}
	cf->paused = !r;
	mutex_unlock(&p->mutex);
	if (r)
		goto err_undo;
	return 0;

err_undo:
	kfd_criu_file_undo(new);
	return r;
}

/**
 * kfd_criu_file_resume - make a file that tells when the queues run
 * @p: process after kfd_criu_start_resume(); its mutex is not held
 * @new: returns the file, for kfd_criu_file_publish() or kfd_criu_file_undo()
 *
 * Return: 0; -EMFILE; -ENFILE; -ENOMEM.
 */
int kfd_criu_file_resume(struct kfd_process *p, struct kfd_criu_new_file *new)
{
	const int r = kfd_criu_file_create(p, new);

	if (!r)
		kfd_criu_file_start_watch(new->file->private_data);
	return r;
}

/**
 * kfd_criu_file_get - get the file of a pause from a descriptor of the caller
 * @fd: the descriptor
 * @p: process that the pause has to be one of
 * @file: returns the file, for fput(); the pause does not end before that,
 *	even if another thread closes the descriptor
 *
 * Return: 0; -EBADF if @fd is not a descriptor of such a file; -EXDEV if it is
 * one of another process.
 */
int kfd_criu_file_get(int fd, const struct kfd_process *p, struct file **file)
{
	struct kfd_criu_file *cf;

	*file = fget(fd);
	if (!*file)
		return -EBADF;
	if ((*file)->f_op != &kfd_criu_file_fops) {
		fput(*file);
		return -EBADF;
	}
	cf = (*file)->private_data;
	if (READ_ONCE(cf->p) != p) {
		fput(*file);
		return -EXDEV;
	}
	return 0;
}

/**
 * kfd_criu_file_is_paused - whether a file is a pause that has not ended
 * @file: file from kfd_criu_file_get(); the mutex of the process is held
 *
 * Return: true if it is.
 */
bool kfd_criu_file_is_paused(const struct file *file)
{
	const struct kfd_criu_file *cf = file->private_data;

	return cf->paused;
}

/**
 * kfd_criu_file_saves_drm_objects - whether the caller of a checkpoint saves the
 * objects of render nodes itself
 * @file: file of a pause from kfd_criu_file_get()
 *
 * Return: true if it does.
 */
bool kfd_criu_file_saves_drm_objects(const struct file *file)
{
	const struct kfd_criu_file *cf = file->private_data;

	return cf->saves_drm_objects;
}

/**
 * kfd_criu_file_unpause - end the pause of a file that stays open
 * @p: the process; its mutex is held
 * @file: file from kfd_criu_file_get()
 *
 * Return: 0; -EINVAL if the pause has ended, or the file is none; as
 * kfd_criu_end_pause(), then it has ended.
 */
int kfd_criu_file_unpause(struct kfd_process *p, struct file *file)
{
	struct kfd_criu_file *cf = file->private_data;
	int r;

	if (!cf->paused)
		return -EINVAL;
	r = kfd_criu_file_end_pause(cf, p);
	kfd_criu_file_start_watch(cf);
	return r;
}
