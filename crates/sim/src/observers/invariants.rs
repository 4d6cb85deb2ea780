//! The invariants of design section 6, checked from outside: this file keeps its own picture of the flash and of every request, and
//! compares. It shares no code with what it checks.
