use super::*;
use crate::moderated::Prior;
use proptest::prelude::*;

const RULE: Rule = Rule {
    alpha: ALPHA,
    equivalence_alpha: 0.05,
    margin: 0.01,
    plan: true,
};

fn effect(a: &[f64], b: &[f64]) -> Option<Effect> {
    Evidence::new(a, b, Scale::of(a, b, false), false)?.effect(None, None, &mut Cache::default())
}

fn judge(effect: Option<&Effect>, better: Direction) -> Judgement {
    decide(effect, effect.and_then(|e| e.p), better, &RULE, None, &[])
}

fn judged(a: &[f64], b: &[f64], better: Direction) -> Judgement {
    judge(effect(a, b).as_ref(), better)
}

#[test]
fn a_large_change_has_a_direction() {
    let (a, b) = ([100.0, 101.0, 99.0, 100.0], [110.0, 111.0, 109.0, 110.0]);
    assert_eq!(judged(&a, &b, Direction::Higher).verdict, Verdict::Improved);
    assert_eq!(judged(&a, &b, Direction::Lower).verdict, Verdict::Regressed);
    assert_eq!(judged(&a, &b, Direction::Unknown).verdict, Verdict::Changed);
    let effect = effect(&a, &b).expect("effect");
    let (low, high) = effect.interval(0.95).expect("interval");
    assert!(low < effect.shown() && effect.shown() < high);
    assert!((effect.shown() - 10.0).abs() < 0.1);
}

#[test]
fn three_runs_claim_nothing_without_history() {
    let (a, b) = ([100.0, 101.0, 99.0], [150.0, 151.0, 149.0]);
    let judgement = judged(&a, &b, Direction::Lower);
    assert_eq!(judgement.verdict, Verdict::Unclear);
    assert_eq!(judgement.reasons, [Reason::TooFewRuns]);
    let prior = Prior {
        df: 20.0,
        variance: 1e-4,
    };
    let evidence = Evidence::new(&a, &b, Scale::Ratio, false).expect("evidence");
    let verdict = |known| {
        judge(
            evidence
                .effect(Some(known), None, &mut Cache::default())
                .as_ref(),
            Direction::Lower,
        )
        .verdict
    };
    assert_eq!(verdict(Known::History(prior)), Verdict::Regressed);
    assert_eq!(verdict(Known::Family(prior)), Verdict::Unclear);
}

#[test]
fn what_is_small_and_what_is_equal() {
    let quiet = [100.0, 100.01, 99.99, 100.0, 100.02];
    let small: Vec<f64> = quiet.iter().map(|v| v * 1.003).collect();
    let judgement = judged(&quiet, &small, Direction::Higher);
    assert_eq!(judgement.verdict, Verdict::Unchanged);
    assert_eq!(judgement.reasons, [Reason::Small]);
    let same = judged(
        &quiet,
        &[100.0, 99.99, 100.02, 100.0, 100.01],
        Direction::Higher,
    );
    assert_eq!((same.verdict, same.reasons), (Verdict::Unchanged, vec![]));
    let noisy = [90.0, 110.0, 100.0, 105.0, 95.0];
    let unknown = judged(&noisy, &[91.0, 111.0, 99.0, 106.0, 96.0], Direction::Higher);
    assert_eq!(unknown.verdict, Verdict::Unclear);
    assert!(matches!(unknown.reasons[..], [Reason::NeedsRuns { more, .. }] if more > 100));
}

#[test]
fn without_spread() {
    let other = judged(&[4096.0; 5], &[8192.0; 5], Direction::Lower);
    assert_eq!(other.verdict, Verdict::Regressed);
    assert_eq!(other.reasons, [Reason::ExactChange]);
    let same = judged(&[0.0; 5], &[0.0; 5], Direction::Lower);
    assert_eq!(same.verdict, Verdict::Unchanged);
    assert_eq!(same.reasons, [Reason::Identical]);
    let once = judged(&[1.0], &[2.0], Direction::Lower);
    assert_eq!(once.reasons, [Reason::TooFewRuns]);
    let twice = judged(&[1.0; 2], &[2.0; 2], Direction::Lower);
    assert_eq!(twice.reasons, [Reason::TooFewRuns, Reason::ExactChange]);
}

#[test]
fn doubts_forbid_every_claim() {
    let (a, b) = ([100.0, 101.0, 99.0, 100.0], [150.0, 151.0, 149.0, 150.0]);
    let effect = effect(&a, &b).expect("effect");
    for doubt in [Reason::OneBoot, Reason::Drift, Reason::EnvironmentDiffers] {
        let judgement = decide(
            Some(&effect),
            effect.p,
            Direction::Lower,
            &RULE,
            None,
            &[doubt],
        );
        assert_eq!(judgement.verdict, Verdict::Unclear);
        assert_eq!(judgement.reasons, [doubt]);
    }
}

#[test]
fn builds_widen_the_margin() {
    let (a, b) = ([100.0, 101.0, 99.0, 100.0], [104.0, 105.0, 103.0, 104.0]);
    let effect = effect(&a, &b).expect("effect");
    let builds = BuildSpread {
        variance: 0.0004,
        of_means: 0.0005,
        df: 10.0,
    };
    // 2 sqrt(2) 0.02 = 5.7 %, above the change of 4 %.
    let judgement = decide(
        Some(&effect),
        effect.p,
        Direction::Lower,
        &RULE,
        Some(builds),
        &[],
    );
    assert_ne!(judgement.verdict, Verdict::Regressed);
    assert_eq!(judgement.reasons.first(), Some(&Reason::Small));
}

/// A drift that both sides of a block share leaves the pairs alone.
#[test]
fn blocks_take_out_what_both_share() {
    let a = [100.0, 120.0, 90.0, 130.0, 80.0, 110.0];
    let b: Vec<f64> = a
        .iter()
        .zip([1.029, 1.031, 1.03, 1.028, 1.032, 1.03])
        .map(|(v, f)| v * f)
        .collect();
    assert_eq!(judged(&a, &b, Direction::Higher).verdict, Verdict::Unclear);
    let paired = Evidence::new(&a, &b, Scale::Ratio, true).expect("evidence");
    let judgement = judge(
        paired.effect(None, None, &mut Cache::default()).as_ref(),
        Direction::Higher,
    );
    assert_eq!(judgement.verdict, Verdict::Improved);
}

#[test]
fn zeros_are_a_part_of_their_own() {
    let none = [0.0; 8];
    let some = [3.0, 0.0, 2.0, 4.0, 3.0, 5.0, 2.0, 3.0];
    let effect = effect(&none, &some).expect("effect");
    assert_eq!(effect.method, Method::TwoPart);
    assert!(effect.p.expect("p") < 0.01);
    assert_eq!(
        judged(&none, &some, Direction::Lower).verdict,
        Verdict::Regressed
    );
}

#[test]
fn failures() {
    let new = judge_failures((0, 10), (8, 10), ALPHA).expect("judgement");
    assert_eq!(new.judgement.verdict, Verdict::Regressed);
    assert_eq!(new.judgement.reasons, [Reason::NewFailures]);
    let few = judge_failures((0, 3), (3, 3), ALPHA).expect("judgement");
    assert!(
        few.interval
            .is_some_and(|(low, high)| low < 100.0 && high <= 100.0)
    );
    let one = judge_failures((0, 10), (1, 10), ALPHA).expect("judgement");
    assert_eq!(one.judgement.verdict, Verdict::Unclear);
    let fixed = judge_failures((8, 10), (0, 10), ALPHA).expect("judgement");
    assert_eq!(fixed.judgement.reasons, [Reason::FixedFailures]);
    assert_eq!(fixed.judgement.verdict, Verdict::Improved);
    assert_eq!(judge_failures((0, 0), (1, 1), ALPHA), None);
}

#[test]
fn reasons_are_words() {
    let needs = |more, at_most| Reason::NeedsRuns { more, at_most }.to_string();
    assert_eq!(needs(5, Some(9)), "needs-runs:+5..9");
    assert_eq!(needs(5, Some(5)), "needs-runs:+5");
    assert_eq!(needs(5, None), "needs-runs:+5..many");
    assert_eq!(Reason::OneBoot.to_string(), "one-boot");
}

fn values() -> impl Strategy<Value = Vec<f64>> {
    let value = prop_oneof![
        any::<f64>(),
        -1e3..1e3_f64,
        0.5..2.0_f64,
        prop::sample::select(vec![0.0, 1e300, -1e300, 5e-324, f64::MAX, 1.0])
    ];
    prop_oneof![
        prop::collection::vec(value, 0..9),
        prop::collection::vec(0.99..1.01_f64, 2..9),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn any_input_is_judged_without_a_wrong_figure(
        a in values(), b in values(), paired: bool, share: bool, prior in prop::option::of((any::<f64>(), any::<f64>())),
    ) {
        let known = prior.map(|(df, variance)| Known::History(Prior { df, variance }));
        let evidence = Evidence::new(&a, &b, Scale::of(&a, &b, share), paired);
        let effect = evidence.as_ref().and_then(|e| e.effect(known, None, &mut Cache::default()));
        let judgement = judge(effect.as_ref(), Direction::Higher);
        if let (Some(evidence), Some(effect)) = (&evidence, &effect)
            && let Some(opinion) = second_opinion(evidence, &mut Cache::default())
        {
            prop_assert!((0.0..=1.0).contains(&opinion.p) && opinion.shift.is_finite());
            let refined = refine(judgement.clone(), effect, &opinion);
            prop_assert!(refined.verdict == judgement.verdict || refined.verdict == Verdict::Unclear);
        }
        if let Some(effect) = &effect {
            if let Some(p) = effect.p {
                prop_assert!((0.0..=1.0).contains(&p));
            }
            if let Some((low, high)) = effect.interval(0.95) {
                prop_assert!(low.is_finite() && high.is_finite() && low <= high);
            }
            if let Some(visible) = effect.smallest_visible(ALPHA) {
                prop_assert!(visible.is_finite() && visible > 0.0);
            }
            if judgement.verdict.is_change() {
                prop_assert!(effect.p.is_none_or(|p| p <= ALPHA));
                prop_assert!(effect.difference.estimate != 0.0);
            }
        } else {
            prop_assert_eq!(judgement.verdict, Verdict::Unclear);
        }
    }

    #[test]
    fn equal_sides_never_change(v in prop::collection::vec(-1e6..1e6_f64, 1..9), share: bool, paired: bool) {
        let evidence = Evidence::new(&v, &v, Scale::of(&v, &v, share), paired).expect("evidence");
        let judgement = judge(evidence.effect(None, None, &mut Cache::default()).as_ref(), Direction::Higher);
        prop_assert!(!judgement.verdict.is_change());
    }
}

/// Judges unpaired values where less is better, with no prior.
fn judged_of(a: &[f64], b: &[f64]) -> Judgement {
    let evidence = Evidence::new(a, b, Scale::of(a, b, false), false);
    let effect = evidence.and_then(|e| e.effect(None, None, &mut Cache::default()));
    let p = effect.as_ref().and_then(|effect| effect.p);
    decide(effect.as_ref(), p, Direction::Lower, &RULE, None, &[])
}

#[test]
fn counts_above_zero_that_never_vary_change_exactly() {
    let side = |value: f64| -> Vec<f64> { [0.0; 2].into_iter().chain([value; 50]).collect() };
    let judgement = judged_of(&side(1.0), &side(3.0));
    assert_eq!(judgement.verdict, Verdict::Regressed, "{judgement:?}");
    let same = judged_of(&side(1.0), &side(1.0));
    assert_ne!(same.verdict, Verdict::Regressed, "{same:?}");
}

#[test]
fn no_claim_contradicts_its_interval() {
    // Most of the new side is zero and the rest is huge: the mean rises, the middle falls.
    let base: Vec<f64> = (0..40).map(|n| f64::from(n % 5)).collect();
    let new: Vec<f64> = (0..40)
        .map(|n| {
            if n % 10 == 0 {
                90.0 + f64::from(n)
            } else {
                0.0
            }
        })
        .collect();
    let evidence = Evidence::new(&base, &new, Scale::Difference, false).unwrap();
    let effect = evidence.effect(None, None, &mut Cache::default()).unwrap();
    assert_eq!(effect.method, Method::TwoPart);
    assert!(effect.p.unwrap() < 0.001);
    let (low, high) = effect.interval(0.95).unwrap();
    assert!(low < 0.0 && high > 0.0, "{low} {high}");
    let judgement = judged_of(&base, &new);
    assert_eq!(judgement.verdict, Verdict::Unclear);
    assert_eq!(judgement.reasons, [Reason::ShapeChanged]);
}

#[test]
fn a_change_beyond_the_range_of_numbers_is_no_claim() {
    let side = |scale: f64| -> Vec<f64> { (1..9).map(|n| scale * f64::from(n)).collect() };
    let judgement = judged_of(&side(1e-300), &side(1e300));
    assert_eq!(judgement.verdict, Verdict::Unclear);
    assert_eq!(judgement.reasons, [Reason::OutOfRange]);
}
