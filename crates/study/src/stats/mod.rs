//! Statistics of samples: exact for instructions, robust and interval-valued for wall time.
//!
//! Everything here is pure and deterministic; each statistic is checked against a published reference value, which
//! its test cites.

pub mod bootstrap;
pub mod distribution;
pub mod exact;
pub mod location;
pub mod moments;
pub mod nonnegative;
pub mod quantile;
pub mod random;
pub mod regression;
pub mod wall;
