//! NIST Statistical Reference Datasets, linear regression (www.itl.nist.gov/div898/strd): data and certified values.

use super::*;

/// The numbers of each line.
fn read(text: &str) -> Vec<Vec<f64>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split(' ').map(|word| word.parse().unwrap()).collect()).collect()
}

/// Response, and rows with a constant.
fn data(text: &str) -> (Vec<Vec<f64>>, Vec<f64>) {
    let numbers = read(text);
    let row = |line: &Vec<f64>| std::iter::once(1.0).chain(line[1..].iter().copied()).collect();
    (numbers.iter().map(row).collect(), numbers.iter().map(|line| line[0]).collect())
}

/// 1, x, ... to a degree.
fn powers(x: f64, degree: i32) -> Vec<f64> {
    (0..=degree).map(|power| x.powi(power)).collect()
}

/// Decimal digits that agree, the fewest of a list.
fn digits(ours: &[f64], certified: &[f64]) -> f64 {
    assert_eq!(ours.len(), certified.len());
    let of = |(ours, certified): (&f64, &f64)| {
        let error = (ours - certified).abs() / if *certified == 0.0 { 1.0 } else { certified.abs() };
        if error == 0.0 { 15.0 } else { -error.log10() }
    };
    ours.iter().zip(certified).map(of).fold(15.0, f64::min)
}

struct Certified<'a> {
    coefficients: &'a [f64],
    errors: &'a [f64],
    deviation: f64,
    r_squared: f64,
}

/// The fewest digits that agree of coefficients, and of everything else.
fn agree((rows, y): &(Vec<Vec<f64>>, Vec<f64>), certified: &Certified<'_>) -> (f64, f64) {
    let fit = Regression::fit(rows, y).unwrap();
    let others = [fit.deviation().unwrap(), fit.r_squared(y).unwrap()];
    let others = digits(&others, &[certified.deviation, certified.r_squared]);
    (digits(&fit.coefficients, certified.coefficients), digits(&fit.errors, certified.errors).min(others))
}

#[test]
fn agrees_with_nist_on_norris() {
    let certified = Certified {
        coefficients: &[-0.262_323_073_774_029, 1.002_116_818_020_45],
        errors: &[0.232_818_234_301_152, 0.429_796_848_199_937e-3],
        deviation: 0.884_796_396_144_373,
        r_squared: 0.999_993_745_883_712,
    };
    let (coefficients, others) = agree(&data(include_str!("norris.txt")), &certified);
    assert!(coefficients >= 12.0 && others >= 12.0, "{coefficients} {others}");
}

#[test]
fn agrees_with_nist_on_longley() {
    let certified = Certified {
        coefficients: &[
            -3_482_258.634_595_82,
            15.061_872_271_373_3,
            -0.358_191_792_925_910e-1,
            -2.020_229_803_816_83,
            -1.033_226_867_173_59,
            -0.511_041_056_535_807e-1,
            1_829.151_464_613_55,
        ],
        errors: &[
            890_420.383_607_373,
            84.914_925_774_766_9,
            0.334_910_077_722_432e-1,
            0.488_399_681_651_699,
            0.214_274_163_161_675,
            0.226_073_200_069_370,
            455.478_499_142_212,
        ],
        deviation: 304.854_073_561_965,
        r_squared: 0.995_479_004_577_296,
    };
    let (coefficients, others) = agree(&data(include_str!("longley.txt")), &certified);
    assert!(coefficients >= 11.0 && others >= 11.0, "{coefficients} {others}");
}

/// A polynomial without noise: all coefficients are 1, their errors 0.
#[test]
fn agrees_with_nist_on_wampler_1() {
    let rows: Vec<Vec<f64>> = (0..=20).map(|x| powers(f64::from(x), 5)).collect();
    let y: Vec<f64> = rows.iter().map(|row| row.iter().sum()).collect();
    let fit = Regression::fit(&rows, &y).unwrap();
    assert!(digits(&fit.coefficients, &[1.0; 6]) >= 8.0, "{:?}", fit.coefficients);
    assert!(digits(&fit.errors, &[0.0; 6]) >= 6.0, "{:?}", fit.errors);
    assert!((fit.r_squared(&y).unwrap() - 1.0).abs() < 1e-14);
}

/// The same polynomial with much greater noise.
#[test]
fn agrees_with_nist_on_wampler_4() {
    let y = [
        75_901, -204_794, 204_863, -204_436, 253_665, -200_894, 214_131, -185_192, 221_249, -138_370, 315_911, -27_644,
        455_253, 197_434, 783_995, 608_816, 1_370_781, 1_303_798, 2_205_519, 2_408_860, 3_444_321,
    ]
    .map(f64::from)
    .to_vec();
    let rows: Vec<Vec<f64>> = (0..=20).map(|x| powers(f64::from(x), 5)).collect();
    let certified = Certified {
        coefficients: &[1.0; 6],
        errors: &[
            215_232.624_678_170,
            236_355.173_469_681,
            77_934.352_433_158_3,
            10_147.550_755_035_0,
            564.566_512_170_752,
            11.232_485_467_931_2,
        ],
        deviation: 236_014.502_379_268,
        r_squared: 0.957_478_440_825_662,
    };
    let (coefficients, others) = agree(&(rows, y), &certified);
    assert!(coefficients >= 7.0 && others >= 12.0, "{coefficients} {others}");
}

/// A polynomial of degree ten whose columns are dependent but for ten digits: programs with the usual limit find no fit, and
/// doubles cannot give more than some seven of the certified digits.
#[test]
fn agrees_with_nist_on_filip() {
    let numbers = read(include_str!("filip.txt"));
    let rows = numbers.iter().map(|line| powers(line[1], 10)).collect();
    let y = numbers.iter().map(|line| line[0]).collect();
    let certified = Certified {
        coefficients: &[
            -1_467.489_614_229_80,
            -2_772.179_591_933_42,
            -2_316.371_081_608_93,
            -1_127.973_940_983_72,
            -354.478_233_703_349,
            -75.124_201_739_375_7,
            -10.875_318_035_534_3,
            -1.062_214_985_889_47,
            -0.670_191_154_593_408e-1,
            -0.246_781_078_275_479e-2,
            -0.402_962_525_080_404e-4,
        ],
        errors: &[
            298.084_530_995_537,
            559.779_865_474_950,
            466.477_572_127_796,
            227.204_274_477_751,
            71.647_866_087_592_7,
            15.289_717_874_740_0,
            2.236_911_598_160_33,
            0.221_624_321_934_227,
            0.142_363_763_154_724e-1,
            0.535_617_408_889_821e-3,
            0.896_632_837_373_868e-5,
        ],
        deviation: 0.334_801_051_324_544e-2,
        r_squared: 0.996_727_416_185_620,
    };
    let (coefficients, others) = agree(&(rows, y), &certified);
    assert!(coefficients >= 6.0 && others >= 6.0, "{coefficients} {others}");
}

/// Computed by hand.
#[test]
fn tells_lack_of_fit_from_what_runs_of_the_same_settings_differ_by() {
    // Two levels thrice and one between: a parabola that no line fits.
    let x = [0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 2.0];
    let rows: Vec<Vec<f64>> = x.iter().map(|x| vec![1.0, *x]).collect();
    let y = [0.0, 1.0, -1.0, 9.0, 11.0, 0.0, 1.0, -1.0];
    let fit = Regression::fit(&rows, &y).unwrap();
    let lack = fit.lack_of_fit(&rows, &y).unwrap();
    // Means 0, 10, 0: pure error 2 + 2 + 2 in 5 degrees; the line is at 2.5, so the rest is 6 * 2.5^2 + 2 * 7.5^2.
    assert_eq!((lack.above, lack.below), (1, 5));
    assert!((lack.pure - 1.2_f64.sqrt()).abs() < 1e-12, "{lack:?}");
    assert!((lack.f.unwrap() - 150.0 / 1.2).abs() < 1e-9, "{lack:?}");
    assert!(lack.p.unwrap() < 0.001, "{lack:?}");
}

#[test]
fn gives_no_quotient_where_runs_of_the_same_settings_are_the_same() {
    let rows: Vec<Vec<f64>> = [0.0, 1.0, 1.0, 2.0].iter().map(|x| vec![1.0, *x]).collect();
    let y = [0.0, 3.0, 3.0, 0.0];
    let lack = Regression::fit(&rows, &y).unwrap().lack_of_fit(&rows, &y).unwrap();
    assert_eq!((lack.f, lack.p, lack.pure), (None, None, 0.0));
    assert!((lack.deviation - 3.0).abs() < 1e-12, "{lack:?}");
}

#[test]
fn refuses_what_the_runs_do_not_tell_apart() {
    let rows: Vec<Vec<f64>> = (0..5).map(|i| vec![1.0, f64::from(i), 2.0 * f64::from(i) + 3.0]).collect();
    assert_eq!(Regression::fit(&rows, &[0.0; 5]), Err(RegressionError::Dependent { column: 2 }));
    let few = Regression::fit(&rows[..2], &[0.0; 2]);
    assert_eq!(few, Err(RegressionError::TooFew { observations: 2, coefficients: 3 }));
    assert_eq!(Regression::fit(&[vec![f64::NAN]], &[0.0]), Err(RegressionError::Malformed));
}
