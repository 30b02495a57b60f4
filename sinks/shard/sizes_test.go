package shard_test

import (
	"testing"

	"github.com/tracesmith/tracesmith/sinks/shard"
)

// While a table grows by single repositories, its buckets change about once per
// doubling, because every change rewrites all files.
func TestBucketsAreKeptWhileATableGrows(t *testing.T) {
	for each := int64(20_000); each < 400_000; each += 10_000 { // average bytes of a repository
		changes, last, size := 0, shard.Buckets(-1), int64(0)
		for repos := 1; repos <= 2000; repos++ {
			size += each*3/4 + int64(repos*7919%11)*each/20
			if buckets := shard.BucketsFor(repos, size, 1<<20); buckets != last {
				changes, last = changes+1, buckets
			}
		}
		if changes > 22 { // both numbers double 11 times at most
			t.Errorf("%d bytes each: the buckets changed %d times", each, changes)
		}
	}
}
