//! Files as byte streams: plain, gzip or zstd, told apart by their magic numbers, never by their names.
