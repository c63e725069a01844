//! Statistics of samples: exact for instructions; robust and with intervals for wall time.
//!
//! All functions are pure and deterministic. Each statistic is checked against a published reference value, which its test
//! cites.

pub mod bootstrap;
pub mod distribution;
pub mod equivalence;
pub mod exact;
pub mod location;
pub mod moments;
pub mod nonnegative;
pub mod quantile;
pub mod random;
pub mod regression;
pub mod wall;
