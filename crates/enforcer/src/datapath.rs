//! Labels in packets: the programs that network devices run, and what must be right beside them.

pub mod attach;
pub mod links;
pub mod netlink;
pub mod programs;
