//! Measurements in turns: each link's against the first one's of the same round, so that what the machine does meanwhile
//! concerns both.

/// The figures of each link, by round.
pub(super) struct Turns(Vec<Vec<f64>>);

impl Turns {
    pub(super) fn new(links: usize) -> Self {
        Self(vec![Vec::new(); links])
    }

    pub(super) fn take(&mut self, link: usize, figure: f64) {
        self.0[link].push(figure);
    }

    /// The median, and how it differs from the first link's: the median of the rounds' ratios with its confidence interval
    /// of 95 %, and their quartiles.
    pub(super) fn tell(&self, link: usize, unit: &str) -> String {
        let figures = sorted(self.0[link].iter().copied());
        let ratios = sorted(self.0[link].iter().zip(&self.0[0]).map(|(own, first)| 100.0 * (own / first - 1.0)));
        let (median, [low, high]) = (middle(&ratios), interval(ratios.len()).map(|rank| ratios[rank]));
        let [lower, upper] = [ratios[ratios.len() / 4], ratios[ratios.len() * 3 / 4]];
        format!(
            "{:.3} {unit}, {median:+.1} % [{low:+.1}, {high:+.1}], quartiles {lower:+.1} and {upper:+.1}, {} rounds",
            middle(&figures),
            ratios.len()
        )
    }
}

fn sorted(figures: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures
}

fn middle(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}

/// The ranks between which the median lies with 95 % confidence, whatever the distribution: each figure is below it with a
/// chance of one half.
fn interval(count: usize) -> [usize; 2] {
    let (half, margin) = (count as f64 / 2.0, 0.98 * (count as f64).sqrt());
    let low = (half - margin).floor().max(0.0) as usize;
    [low, (count - 1).saturating_sub(low)]
}

#[test]
fn finds_the_interval_of_a_median() {
    assert_eq!(interval(60), [22, 37]);
    assert_eq!(interval(1), [0, 0]);
}

#[test]
fn compares_within_rounds() {
    let mut turns = Turns::new(2);
    for round in 1..=4 {
        turns.take(0, f64::from(round));
        turns.take(1, f64::from(round) * 1.5);
    }
    assert!(turns.tell(1, "us").contains("+50.0 % [+50.0, +50.0]"), "{}", turns.tell(1, "us"));
}
