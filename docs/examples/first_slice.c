/* The first slice of a client in C: the header of a message, and where a latency is counted. No library is needed.
   Reads lines, writes one for each:
     header EPOCH PUBLISHER SEQUENCE TIME_NS   -> its 24 bytes, in hexadecimal
     index US                                  -> the index of the histogram at which so many microseconds are counted */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

static const int64_t LONGEST_US = 3600000000; /* an hour: what is longer counts as that */

static void put(unsigned char *at, uint64_t value, int bytes) { /* little endian, on every machine */
    for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> (8 * i));
}

static void header(unsigned char out[24], uint32_t epoch, uint32_t publisher, uint64_t sequence, uint64_t time_ns) {
    put(out, epoch, 4);
    put(out + 4, publisher, 4);
    put(out + 8, sequence, 8);
    put(out + 16, time_ns, 8);
}

static int64_t index_of(int64_t us) {
    if (us < 0) return -1 - index_of(us < -LONGEST_US ? LONGEST_US : -us); /* mirrored: clocks of two hosts disagree */
    uint64_t value = (uint64_t)(us > LONGEST_US ? LONGEST_US : us);
    int bits = 0;
    while (value >> bits) bits++;
    int bucket = bits > 11 ? bits - 11 : 0; /* three significant digits: 2048 steps */
    return (int64_t)bucket * 1024 + (int64_t)(value >> bucket);
}

int main(void) {
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        uint32_t epoch, publisher;
        uint64_t sequence, time_ns;
        int64_t us;
        if (sscanf(line, "header %" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64, &epoch, &publisher, &sequence, &time_ns) == 4) {
            unsigned char bytes[24];
            header(bytes, epoch, publisher, sequence, time_ns);
            for (int i = 0; i < 24; i++) printf("%02x", bytes[i]);
            printf("\n");
        } else if (sscanf(line, "index %" SCNd64, &us) == 1) {
            printf("%" PRId64 "\n", index_of(us));
        } else {
            fprintf(stderr, "cannot read: %s", line);
            return 2;
        }
    }
    return 0;
}
