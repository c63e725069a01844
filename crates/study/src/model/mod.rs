//! The model T(L) = a + sum of n_h L_h: the cost of a workload whose hooks are delayed. It is measured with few runs, fitted
//! and compared with counts; prices of hooks predict what a module would cost a command. docs/model.md describes it.

pub mod against;
pub mod counts;
mod entries;
pub mod fit;
pub mod observations;
pub mod prediction;
pub mod prices;

pub use against::{Against, against};
pub use counts::{Counts, CountsError};
pub use fit::{Fit, FitError, Fits, Slope, fit};
pub use observations::{Observations, ObservationsError};
pub use prediction::{Prediction, PredictionError, predict};
