//! Controls: workloads that pass no security hook must cost the same under every configuration.

use tollgate_bench::{
    selection::Selection,
    workload::{Group, Tasks},
};

use super::Results;

/// The minima of a control workload over all configurations on one kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Control {
    /// The workload's selection.
    pub workload: String,
    /// The smallest minimum of all configurations.
    pub lowest: f64,
    /// The largest minimum of all configurations.
    pub highest: f64,
    /// The configuration with the largest minimum.
    pub highest_in: String,
}

impl Control {
    /// Whether the minimum is the same under every configuration.
    pub fn held(&self) -> bool {
        self.lowest == self.highest
    }
}

impl Results {
    /// The controls measured on a kernel.
    pub fn controls(&self, kernel: &str) -> Vec<Control> {
        let mut controls: Vec<Control> = Vec::new();
        for (configuration, workload) in self.on(kernel).flat_map(|c| c.workloads.iter().map(move |w| (c, w))) {
            let is_control = |s: Selection| s.workload.group == Group::Control && s.workload.tasks == Tasks::One;
            if !workload.name.parse::<Selection>().is_ok_and(is_control) {
                continue;
            }
            match controls.iter_mut().find(|c| c.workload == workload.name) {
                None => controls.push(Control {
                    workload: workload.name.clone(),
                    lowest: workload.min,
                    highest: workload.min,
                    highest_in: configuration.name.clone(),
                }),
                Some(control) => {
                    control.lowest = control.lowest.min(workload.min);
                    if workload.min > control.highest {
                        control.highest = workload.min;
                        control.highest_in.clone_from(&configuration.name);
                    }
                }
            }
        }
        controls
    }
}

#[cfg(test)]
mod tests {
    use crate::results::examples::{boot, results};

    #[test]
    fn holds_when_the_minima_are_equal_whatever_the_rest_is() {
        let built = results(&[
            boot("none", 0).measured("null", &[337., 337.]).measured("stat", &[3900.]),
            boot("tomoyo", 0).measured("null", &[400., 337.]).measured("stat", &[5000.]),
        ]);
        let controls = built.controls("6.1");
        assert_eq!(controls.len(), 1);
        assert!(controls[0].held());
    }

    #[test]
    fn reports_the_configuration_that_moves_a_control() {
        let built = results(&[
            boot("none", 0).measured("null", &[337.]),
            boot("tomoyo", 0).measured("null", &[340.]),
            boot("landlock", 0).measured("null", &[338.]),
        ]);
        let control = &built.controls("6.1")[0];
        assert!(!control.held());
        assert_eq!((control.lowest, control.highest, control.highest_in.as_str()), (337.0, 340.0, "tomoyo"));
    }
}
