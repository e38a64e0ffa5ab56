/* Preloaded into both sides of the benchmark: a disk whose every sync takes 4 ms, neither more nor less.

   The real sync is left out: on shared disks it takes 0.4 to 8 ms, and only ratios are of interest. */
#include <time.h>

static int slow(void)
{
	const struct timespec pause = { 0, 4000000 };
	nanosleep(&pause, 0);
	return 0;
}

int fsync(int descriptor) { (void)descriptor; return slow(); }
int fdatasync(int descriptor) { (void)descriptor; return slow(); }
