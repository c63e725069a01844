//! Real kernels in guests.

mod program;
