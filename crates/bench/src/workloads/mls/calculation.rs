//! Calculation with floating-point numbers: what Fourmilab's fbench and ffbench calculate, written anew.

use std::{f64::consts::PI, hint::black_box, io};

use crate::{place::Place, workload::Prepared};

/// Pairs of rays of one operation.
const PAIRS: usize = 2_000;

/// The surfaces of a doublet: radius of curvature, index of refraction behind it, and distance to the next.
const LENS: [(f64, f64, f64); 4] =
    [(27.05, 1.5137, 0.52), (-16.68, 1.0, 0.138), (-16.68, 1.6164, 0.38), (-78.1, 1.0, 0.0)];
/// Half of the lens's opening.
const HEIGHT: f64 = 2.0;

/// The side of the transformed picture.
const SIDE: usize = 256;

pub(super) fn ray_trace(_: &Place) -> Prepared {
    Ok(Box::new(|| {
        for _ in 0..PAIRS {
            black_box(focus(black_box(HEIGHT)) - near_the_axis(black_box(HEIGHT)));
        }
        io::Result::Ok(())
    }))
}

/// How far behind the lens a ray that comes in at a height meets the axis, by Snell's law.
fn focus(height: f64) -> f64 {
    let (mut index, mut slope, mut distance) = (1.0, 0.0_f64, 0.0);
    for (number, (radius, next, thickness)) in LENS.into_iter().enumerate() {
        let sine = if number == 0 { height / radius } else { (distance - radius) / radius * slope.sin() };
        let refracted = index / next * sine;
        let inside = slope + sine.asin() - refracted.asin();
        let half = ((slope + sine.asin()) / 2.0).sin();
        let cut = 2.0 * radius * half * half;
        distance = radius * (slope + sine.asin()).sin() / inside.tan() + cut - thickness;
        (index, slope) = (next, inside);
    }
    distance
}

/// The same for a ray so near to the axis that an angle is its sine.
fn near_the_axis(height: f64) -> f64 {
    let (mut index, mut slope, mut distance, mut above) = (1.0, 0.0, 0.0, height);
    for (number, (radius, next, thickness)) in LENS.into_iter().enumerate() {
        let sine = if number == 0 { height / radius } else { (distance - radius) / radius * slope };
        let inside = slope + sine - index / next * sine;
        if number > 0 {
            above = distance * slope;
        }
        distance = above / inside - thickness;
        (index, slope) = (next, inside);
    }
    distance
}

type Complex = (f64, f64);

pub(super) fn fft(_: &Place) -> Prepared {
    // A ring, as a picture of something that a transform spreads over all frequencies.
    let bright = |x: usize, y: usize| if (x * x + y * y) % 1024 < 512 { 1.0 } else { 0.0 };
    let mut picture: Vec<Complex> = (0..SIDE * SIDE).map(|at| (bright(at % SIDE, at / SIDE), 0.0)).collect();
    let mut line = vec![(0.0, 0.0); SIDE];
    Ok(Box::new(move || {
        transform(&mut picture, &mut line, -1.0);
        transform(&mut picture, &mut line, 1.0);
        // Back to what it was, for the next operation.
        let points = (SIDE * SIDE) as f64;
        picture.iter_mut().for_each(|(real, imaginary)| (*real, *imaginary) = (*real / points, *imaginary / points));
        black_box(&picture);
        io::Result::Ok(())
    }))
}

/// Transforms all rows, then all columns.
fn transform(picture: &mut [Complex], line: &mut [Complex], sign: f64) {
    picture.chunks_exact_mut(SIDE).for_each(|row| butterflies(row, sign));
    for column in 0..SIDE {
        for (row, value) in line.iter_mut().enumerate() {
            *value = picture[row * SIDE + column];
        }
        butterflies(line, sign);
        for (row, value) in line.iter().enumerate() {
            picture[row * SIDE + column] = *value;
        }
    }
}

/// Cooley and Tukey's transform in place, of a power of two.
fn butterflies(values: &mut [Complex], sign: f64) {
    let bits = values.len().trailing_zeros();
    for at in 0..values.len() {
        let other = at.reverse_bits() >> (usize::BITS - bits);
        if other > at {
            values.swap(at, other);
        }
    }
    let mut half = 1;
    while half < values.len() {
        let (step_imaginary, step_real) = (sign * PI / half as f64).sin_cos();
        for group in values.chunks_exact_mut(2 * half) {
            let (low, high) = group.split_at_mut(half);
            let (mut real, mut imaginary) = (1.0, 0.0);
            for (a, b) in low.iter_mut().zip(high) {
                let turned = (b.0 * real - b.1 * imaginary, b.0 * imaginary + b.1 * real);
                *b = (a.0 - turned.0, a.1 - turned.1);
                *a = (a.0 + turned.0, a.1 + turned.1);
                (real, imaginary) =
                    (real * step_real - imaginary * step_imaginary, real * step_imaginary + imaginary * step_real);
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bends_rays_to_a_focus_that_is_further_off_the_nearer_they_are_to_the_axis() {
        let [near, outer] = [near_the_axis(HEIGHT), focus(HEIGHT)];
        assert!((focus(1e-4) - near).abs() < 1e-4, "{} {near}", focus(1e-4));
        assert!(near > 10.0 && (near - outer).abs() < 0.1 && near != outer, "{near} {outer}");
    }

    #[test]
    fn transforms_a_wave_to_its_one_frequency_and_back() {
        let wave = |at: usize| ((2.0 * PI * 3.0 * at as f64 / 16.0).cos(), 0.0);
        let mut values: Vec<Complex> = (0..16).map(wave).collect();
        butterflies(&mut values, -1.0);
        for (frequency, (real, imaginary)) in values.iter().enumerate() {
            let expected = if [3, 13].contains(&frequency) { 8.0 } else { 0.0 };
            assert!((real - expected).abs() < 1e-9 && imaginary.abs() < 1e-9, "{frequency}: {real} {imaginary}");
        }
        butterflies(&mut values, 1.0);
        assert!((0..16).all(|at| (values[at].0 / 16.0 - wave(at).0).abs() < 1e-9));
    }
}
