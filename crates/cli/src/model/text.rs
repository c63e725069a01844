//! Designs, fits and predictions, as text for people.

use std::fmt::Write;

use tollgate_study::design::Design;
use tollgate_study::model::{
    Against, Fit, Fits, Prediction, Slope,
    prediction::{Overhead, Range},
};

/// Slopes below this many calls are only counted: a hundredth of a call.
const NEGLIGIBLE: f64 = 0.01;

/// One line per run, one sign per hook.
pub(super) fn design(design: &Design) -> String {
    let plan = &design.plan;
    let mut text = format!(
        "{} hooks in {} runs: a Hadamard matrix of order {}{}, and {} runs at the centre; seed {}\n\
         +: {} units of delay, -: none, o: {} units\n\n",
        plan.hooks.len(),
        design.runs.len(),
        design.order,
        if plan.folded { ", each run with its opposite" } else { "" },
        plan.centres,
        plan.seed,
        plan.units,
        plan.units / 2
    );
    for (number, run) in design.runs.iter().enumerate() {
        let sign = |units: &u64| match *units {
            0 => '-',
            units if units == plan.units => '+',
            _ => 'o',
        };
        let _ = writeln!(text, "{:>4}  {}", number + 1, run.iter().map(sign).collect::<String>());
    }
    let _ = writeln!(text, "\nHooks, from left to right: {}", plan.hooks.join(" "));
    text
}

/// The fits of one kernel.
pub(super) fn fits(fits: &Fits, residuals: bool) -> String {
    let mut text = format!(
        "{}: cost = a + sum of n L over {} hooks, L what was injected, in {}; n is how often an operation passes the \
         hook; intervals of {} %\n",
        fits.kernel,
        fits.hooks.len(),
        fits.clock.unit(),
        (fits.level * 1000.0).round() / 10.0
    );
    for fit in &fits.workloads {
        one(&mut text, fit);
        if residuals {
            let _ = writeln!(text, "    residuals, by run");
            for (number, residual) in fit.residuals.iter().enumerate() {
                let _ = writeln!(text, "    {:>6}  {residual:>12.2}", number + 1);
            }
        }
    }
    text
}

fn one(text: &mut String, fit: &Fit) {
    let _ = writeln!(
        text,
        "\n{}: a = {:.1}, {} runs, residual standard deviation {}, R2 {}, {}",
        fit.workload,
        fit.intercept.value,
        fit.runs,
        fit.deviation.map_or_else(|| "unknown".into(), |deviation| format!("{deviation:.2}")),
        fit.r_squared.map_or_else(|| "-".into(), |share| format!("{share:.6}")),
        lack(fit)
    );
    let (passed, rest): (Vec<&Slope>, Vec<&Slope>) =
        fit.slopes.iter().partition(|slope| slope.value.abs() >= NEGLIGIBLE);
    let width = passed.iter().map(|slope| slope.hook.len()).max().unwrap_or(0);
    for slope in &passed {
        let interval = match (slope.low, slope.high) {
            (Some(low), Some(high)) => format!("{low:.4} to {high:.4}"),
            _ => "no interval: as many coefficients as runs".into(),
        };
        let _ = writeln!(text, "    {:width$}  {:>10.4}  {interval}", slope.hook, slope.value);
    }
    let greatest = rest.iter().map(|slope| slope.value.abs()).fold(0.0, f64::max);
    if !rest.is_empty() {
        let _ = writeln!(text, "    {} more hooks: 0, by {greatest:.4} at most", rest.len());
    }
}

fn lack(fit: &Fit) -> String {
    match fit.lack_of_fit {
        None => {
            "lack of fit not tested: no settings were run twice, or no more of them than there are coefficients".into()
        }
        Some(lack) => match (lack.f, lack.p) {
            (Some(f), Some(p)) => format!("lack of fit: F({}, {}) = {f:.2}, p = {p:.3}", lack.above, lack.below),
            _ => format!("equal runs cost the same; the line is off by {:.2} at most", fit.worst_residual()),
        },
    }
}

/// The comparison of slopes with counts.
pub(super) fn against(against: &Against) -> String {
    let mut text = format!(
        "\nSlopes against counts: {} pairs of workload and hook, {} of them passed; {} differ by more than 1 %\n",
        against.pairs,
        against.passed,
        against.differences.len()
    );
    for difference in &against.differences {
        let _ = writeln!(
            text,
            "    {} {}: slope {:.4}, count {}: {}",
            difference.workload,
            difference.hook,
            difference.slope,
            difference.count,
            difference.reason.as_deref().unwrap_or("nothing says why")
        );
    }
    if !against.uncounted.is_empty() {
        let _ = writeln!(text, "Without counts: {}", against.uncounted.join(", "));
    }
    if !against.not_delayed.is_empty() {
        let _ = writeln!(text, "Counted, but not delayed: {}", against.not_delayed.join(", "));
    }
    text
}

/// How many of the hooks that cost a command most are named.
const MAX_NAMED: usize = 3;

/// What commands would cost. Limits are mostly the same for all commands, and are then printed once.
pub(super) fn predictions(all: &[Prediction]) -> String {
    let groups: Vec<String> = all.iter().map(together).collect();
    let is_one = groups.windows(2).all(|pair| pair[0] == pair[1]);
    let mut text = String::new();
    for (number, (one, group)) in all.iter().zip(&groups).enumerate() {
        if number > 0 {
            text.push('\n');
        }
        text += &prediction(one);
        if !is_one || number + 1 == all.len() {
            text += group;
        }
    }
    text
}

/// Hooks that workloads cannot separate; printed once if they are the same under all modules.
fn together(prediction: &Prediction) -> String {
    let lines = |one: &Overhead| -> String {
        one.inseparable.iter().map(|group| format!("Priced together only: {}\n", group.join(", "))).collect()
    };
    match &prediction.modules[..] {
        [first, rest @ ..] if rest.iter().all(|one| one.inseparable == first.inseparable) => {
            format!("\n{}", lines(first))
        }
        all => all.iter().map(|one| format!("\n{}:\n{}", one.module, lines(one))).collect(),
    }
}

/// What a command would cost, one line per module.
fn prediction(prediction: &Prediction) -> String {
    let unit = prediction.clock.unit();
    let cost = prediction.cost.map_or_else(String::new, |cost| format!(", {cost:.0} {unit} without a module"));
    let mut text = format!(
        "{}: {:.0} calls of hooks per run{cost}; prices of {}, intervals of {} %\n\n",
        prediction.command,
        prediction.calls,
        prediction.kernel,
        (prediction.level * 1000.0).round() / 10.0
    );
    let width = prediction.modules.iter().map(|one| one.module.len()).max().unwrap_or(0);
    for one in &prediction.modules {
        let percent = one.percent.map(|percent| format!("  {}", range(percent, 2, " %"))).unwrap_or_default();
        let _ = writeln!(
            text,
            "{:width$}  {}{percent}  {} workloads, misfit {:.1} %{}",
            one.module,
            range(one.overhead, 0, &format!(" {unit}")),
            one.workloads,
            one.misfit,
            dearest(one)
        );
    }
    // The limits are mostly the same for all modules; they differ if a workload could not be measured under one.
    let limits = |one: &Overhead| limits(one);
    match &prediction.modules[..] {
        [first, rest @ ..] if rest.iter().all(|one| limits(one) == limits(first)) => text += &limits(first),
        all => text.extend(
            all.iter()
                .map(|one| (one, limits(one)))
                .filter(|(_, limits)| !limits.is_empty())
                .map(|(one, limits)| format!("\n{}:{limits}", one.module)),
        ),
    }
    text
}

/// What a module's figure leaves out.
fn limits(one: &Overhead) -> String {
    let mut text = String::new();
    let unpriced: f64 = one.unpriced.iter().map(|one| one.percent).sum();
    if !one.unpriced.is_empty() {
        let named: Vec<String> = one.unpriced.iter().map(|one| format!("{} {:.1} %", one.hook, one.percent)).collect();
        let _ = writeln!(
            text,
            "\nWithout a price, in no figure: {unpriced:.1} % of the calls, of hooks that no workload passes: {}",
            named.join(", ")
        );
    }
    text
}

/// The figure and its interval.
fn range(range: Range, digits: usize, unit: &str) -> String {
    format!("{:+.digits$}{unit} ({:.digits$} to {:.digits$})", range.value, range.low, range.high)
}

fn dearest(one: &Overhead) -> String {
    let mut prices: Vec<(&String, &f64)> = one.prices.iter().filter(|(_, price)| **price >= 1.0).collect();
    prices.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let named: Vec<String> = prices.iter().take(MAX_NAMED).map(|(hook, price)| format!("{hook} {price:.0}")).collect();
    if named.is_empty() { String::new() } else { format!("; a call of {}", named.join(", ")) }
}

#[cfg(test)]
mod tests {
    use tollgate_study::stats::regression::LackOfFit;

    use super::*;

    fn fit(lack_of_fit: Option<LackOfFit>) -> Fit {
        let intercept = Slope { hook: String::new(), value: 4000.0, error: 1.0, low: None, high: None };
        Fit {
            workload: "stat".into(),
            runs: 5,
            intercept,
            slopes: Vec::new(),
            deviation: None,
            r_squared: None,
            lack_of_fit,
            residuals: vec![3.0, -7.25, 0.0],
        }
    }

    #[test]
    fn tells_whether_a_line_fits_or_why_nobody_knows() {
        let tested = LackOfFit { deviation: 9.0, pure: 3.0, above: 4, below: 6, f: Some(9.0), p: Some(0.0104) };
        assert_eq!(lack(&fit(Some(tested))), "lack of fit: F(4, 6) = 9.00, p = 0.010");
        let exact = LackOfFit { pure: 0.0, f: None, p: None, ..tested };
        assert_eq!(lack(&fit(Some(exact))), "equal runs cost the same; the line is off by 7.25 at most");
        assert!(lack(&fit(None)).starts_with("lack of fit not tested: no settings were run twice"));
    }

    #[test]
    fn says_why_there_is_no_interval_and_sums_up_what_is_nothing() {
        let slope = |hook: &str, value, ends: Option<(f64, f64)>| Slope {
            hook: hook.into(),
            value,
            error: 0.0,
            low: ends.map(|(low, _)| low),
            high: ends.map(|(_, high)| high),
        };
        let told = |ends| {
            let slopes =
                vec![slope("file_open", 1.0, ends), slope("capable", 0.004, ends), slope("bpf", -0.0051, ends)];
            let mut text = String::new();
            one(&mut text, &Fit { slopes, ..fit(None) });
            text
        };
        assert!(
            told(Some((0.99, 1.01)))
                .contains("file_open      1.0000  0.9900 to 1.0100\n    2 more hooks: 0, by 0.0051")
        );
        assert!(told(None).contains("no interval: as many coefficients as runs"));
    }
}
