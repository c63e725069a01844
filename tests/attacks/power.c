/* power DIRECTORY SEED: creates, links, moves and removes files until it is killed. A name begins
 * with the letter of the file's permanent label: open, tool, source, made. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A new file has its directory's label, except in `source`, where it is `made`. */
static const char *const places[] = {"open", "tool", "source", "open/below", "tool/below"};
#define PLACES (sizeof places / sizeof *places)
#define MOST 600

struct object {
	char name[32];
	const char *place;
	int directory;
};

static struct object objects[MOST];
static unsigned used, numbers;
static unsigned state;

static unsigned below(unsigned limit)
{
	state = state * 1664525 + 1013904223;
	return (state >> 8) % limit;
}

static const char *any_place(void)
{
	return places[below(PLACES)];
}

static const char *path_of(const char *place, const char *name)
{
	static char paths[4][128];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof paths[0], "%s/%s", place, name);
	return path;
}

static struct object *new_object(char letter, const char *place, int directory)
{
	struct object *object = used < MOST ? &objects[used] : &objects[below(MOST)];

	if (used == MOST) {
		/* The oldest ones stay. */
		if (object->directory)
			return 0;
	} else {
		used++;
	}
	snprintf(object->name, sizeof object->name, "%c%u", letter, numbers++);
	object->place = place;
	object->directory = directory;
	return object;
}

static char letter_of(const char *place, int directory)
{
	return !directory && place[0] == 's' ? 'm' : place[0];
}

/* A removed name is not used again: its file would have another label. */
static void touch(const char *path, int create)
{
	int file = open(path, O_WRONLY | O_APPEND | create, 0644);

	if (file < 0)
		return;
	if (write(file, path, 1) < 0 || (!below(8) && fsync(file)))
		perror(path);
	close(file);
}

/* A file in a directory of such a letter. */
static void fill(const char *path, char letter)
{
	char file[160];

	snprintf(file, sizeof file, "%s/%c%u", path, letter == 's' ? 'm' : letter, numbers++);
	touch(file, O_CREAT);
}

static void make(void)
{
	const char *place = any_place(), *path;
	int directory = !below(6);
	struct object *object = new_object(letter_of(place, directory), place, directory);

	if (!object)
		return;
	path = path_of(place, object->name);
	if (!directory) {
		touch(path, O_CREAT);
		return;
	}
	mkdir(path, 0755);
	fill(path, object->name[0]);
}

/* A file without a name gets one in another directory. */
static void make_nameless(void)
{
	const char *place = any_place();
	int file = open(place, O_TMPFILE | O_WRONLY, 0644);
	char proc[64];
	struct object *object;

	if (file < 0)
		return;
	object = new_object(letter_of(place, 0), any_place(), 0);
	if (object) {
		snprintf(proc, sizeof proc, "/proc/self/fd/%d", file);
		linkat(AT_FDCWD, proc, AT_FDCWD, path_of(object->place, object->name),
		       AT_SYMLINK_FOLLOW);
	}
	close(file);
}

static void move(struct object *object)
{
	const char *place = any_place(), *to = path_of(place, object->name);

	if (rename(path_of(object->place, object->name), to))
		return;
	object->place = place;
	/* A change of a moved directory hides when it was moved. */
	if (object->directory)
		fill(to, object->name[0]);
	else if (below(2))
		touch(to, 0);
}

/* Each keeps its letter: only files of one letter are exchanged between directories.
 */
static struct object *like(const struct object *one)
{
	unsigned first = below(used), number;

	for (number = 0; number < used; number++) {
		struct object *other = &objects[(first + number) % used];

		if (other != one && other->directory == one->directory &&
		    other->name[0] == one->name[0] && other->place != one->place)
			return other;
	}
	return 0;
}

static void exchange(struct object *one)
{
	struct object *other = like(one);
	const char *path;

	if (!other)
		return;
	path = path_of(one->place, one->name);
	if (renameat2(AT_FDCWD, path, AT_FDCWD, path_of(other->place, other->name),
		      RENAME_EXCHANGE))
		return;
	if (one->directory)
		fill(path, one->name[0]);
	else if (below(2))
		touch(path, 0);
}

static void add_name(struct object *object)
{
	struct object *name = new_object(object->name[0], any_place(), 0);

	if (name && name != object && !object->directory)
		link(path_of(object->place, object->name), path_of(name->place, name->name));
}

static void sync_all(void)
{
	int directory = open(any_place(), O_RDONLY);

	if (directory < 0)
		return;
	if (below(2) ? fsync(directory) : syncfs(directory))
		perror("sync");
	close(directory);
}

static void act(void)
{
	unsigned kind = below(20);
	struct object *object = used ? &objects[below(used)] : 0;

	if (kind < 7 || !object)
		make();
	else if (kind < 8)
		make_nameless();
	else if (kind < 12)
		move(object);
	else if (kind < 14)
		add_name(object);
	else if (kind < 15)
		exchange(object);
	else if (kind < 17 && !object->directory)
		touch(path_of(object->place, object->name), 0);
	else if (kind < 18 && !object->directory)
		unlink(path_of(object->place, object->name));
	else if (!below(3))
		sync_all();
	if (!below(4))
		usleep(below(30000));
}

int main(int count, char **words)
{
	if (count != 3 || chdir(words[1])) {
		perror("power DIRECTORY SEED");
		return 2;
	}
	state = atoi(words[2]);
	for (;;)
		act();
}
