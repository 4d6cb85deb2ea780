//! Claims over all studies: a claim holds as well as the worst of its numbers.

use crate::outcome::{Check, Outcome, Paper, Verdict};

/// A claim with what answers it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimVerdict<'a> {
    /// As in `claims.toml`: `piq.fig8.piq_r`.
    pub claim: &'a str,
    /// The document of the first study that answers it.
    pub paper: Paper,
    /// All checks of it with their studies, in the order of the studies.
    pub checks: Vec<(&'a Outcome, &'a Check)>,
    /// Which of them decides: the worst, of equal ones that which is furthest from the published number.
    pub decisive: usize,
    /// The worst verdict; none when no check has one.
    pub verdict: Option<Verdict>,
}

impl<'a> ClaimVerdict<'a> {
    /// The study and the check that decide.
    pub fn deciding(&self) -> (&'a Outcome, &'a Check) {
        self.checks[self.decisive]
    }

    /// How its numbers come out.
    pub fn tally(&self) -> Tally {
        Tally::of(self.checks.iter().map(|(_, check)| check.verdict))
    }
}

/// The claims that the studies answer, in the order of the papers and then of the studies.
pub fn claims(outcomes: &[Outcome]) -> Vec<ClaimVerdict<'_>> {
    let mut claims: Vec<ClaimVerdict<'_>> = Vec::new();
    for outcome in outcomes {
        for check in &outcome.checks {
            let Some(name) = &check.claim else { continue };
            match claims.iter_mut().find(|of| of.claim == name) {
                Some(of) => of.checks.push((outcome, check)),
                None => claims.push(ClaimVerdict {
                    claim: name,
                    paper: outcome.paper,
                    checks: vec![(outcome, check)],
                    decisive: 0,
                    verdict: None,
                }),
            }
        }
    }
    for of in &mut claims {
        of.verdict = of.checks.iter().filter_map(|(_, check)| check.verdict).max();
        let rank = |index: &usize| (of.checks[*index].1.verdict, distance(of.checks[*index].1));
        let indices = (0..of.checks.len()).rev();
        of.decisive = indices
            .max_by(|a, b| rank(a).0.cmp(&rank(b).0).then(rank(a).1.total_cmp(&rank(b).1)))
            .unwrap_or(0);
    }
    claims.sort_by_key(|of| of.paper);
    claims
}

/// How far the measured number is from the published one, as a share of it; nothing where either is none.
fn distance(check: &Check) -> f64 {
    match (check.published_value, check.measured_value) {
        (Some(published), Some(measured)) if published != 0.0 && measured.is_finite() => {
            (measured / published - 1.0).abs()
        }
        _ => 0.0,
    }
}

/// How many hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// As published.
    pub holds: usize,
    /// In direction only.
    pub direction: usize,
    /// Not at all.
    pub fails: usize,
    /// Tests of the method on drives that the studies set up.
    pub self_tests: usize,
    /// Without a verdict: nothing was published.
    pub open: usize,
}

impl Tally {
    /// Of some verdicts.
    pub fn of(verdicts: impl IntoIterator<Item = Option<Verdict>>) -> Tally {
        let mut tally = Tally::default();
        for verdict in verdicts {
            match verdict {
                Some(Verdict::SelfTest) => tally.self_tests += 1,
                Some(Verdict::Holds) => tally.holds += 1,
                Some(Verdict::Direction) => tally.direction += 1,
                Some(Verdict::Fails) => tally.fails += 1,
                None => tally.open += 1,
            }
        }
        tally
    }

    /// How many have a verdict.
    pub fn judged(self) -> usize {
        self.holds + self.direction + self.fails
    }

    /// Share that holds; none of none.
    pub fn share_holding(self) -> Option<f64> {
        (self.judged() > 0).then(|| self.holds as f64 / self.judged() as f64)
    }

    /// Share that holds at least in direction; none of none.
    pub fn share_in_direction(self) -> Option<f64> {
        (self.judged() > 0).then(|| (self.holds + self.direction) as f64 / self.judged() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Size;
    use Verdict::{Direction, Fails, Holds};

    fn check(claim: &str, verdict: Option<Verdict>, published: f64, measured: f64) -> Check {
        Check {
            claim: (!claim.is_empty()).then(|| claim.to_owned()),
            what: format!("{claim} {measured}"),
            published: published.to_string(),
            measured: measured.to_string(),
            published_value: Some(published),
            measured_value: Some(measured),
            verdict,
            in_linux: None,
            why: Vec::new(),
        }
    }

    fn outcome(id: &str, paper: Paper, checks: Vec<Check>) -> Outcome {
        Outcome {
            id: id.to_owned(),
            title: String::new(),
            paper,
            figure: String::new(),
            section: String::new(),
            about: Vec::new(),
            size: Size::Quick,
            variables: Vec::new(),
            sources: Vec::new(),
            checks,
            figures: Vec::new(),
            tables: Vec::new(),
            commands: Vec::new(),
            runs: 0,
            overloaded: Vec::new(),
        }
    }

    #[test]
    fn a_claim_holds_as_well_as_its_worst_number_over_all_studies() {
        let outcomes = [
            outcome(
                "gc-fig1",
                Paper::Gc,
                vec![check("gc.a", Some(Holds), 1.0, 1.0), check("gc.open", None, 1.0, 1.0)],
            ),
            outcome(
                "piq-fig8",
                Paper::Piq,
                vec![
                    check("piq.a", Some(Direction), 0.5, 0.3),
                    check("", Some(Fails), 0.5, 1.3),
                    check("piq.a", Some(Holds), 0.5, 0.5),
                    check("piq.a", None, 0.5, 9.0),
                ],
            ),
            outcome("piq-fig9", Paper::Piq, vec![check("piq.a", Some(Direction), 0.5, 0.9)]),
        ];
        let claims = claims(&outcomes);
        let found: Vec<_> = claims.iter().map(|of| (of.claim, of.verdict, of.checks.len())).collect();
        assert_eq!(found, [("piq.a", Some(Direction), 4), ("gc.a", Some(Holds), 1), ("gc.open", None, 1)]);
        let (study, deciding) = claims[0].deciding();
        assert_eq!(
            (study.id.as_str(), deciding.measured.as_str()),
            ("piq-fig9", "0.9"),
            "the furthest of the worst"
        );
        assert_eq!(claims[0].tally(), Tally { holds: 1, direction: 2, fails: 0, self_tests: 0, open: 1 });
    }

    #[test]
    fn one_failing_number_fails_its_claim() {
        let checks = vec![check("a", Some(Holds), 1.0, 1.0), check("a", Some(Fails), 1.0, 1.01)];
        let outcomes = [outcome("x", Paper::Pass, checks)];
        let claims = claims(&outcomes);
        assert_eq!((claims[0].verdict, claims[0].decisive), (Some(Fails), 1));
    }

    #[test]
    fn shares_are_of_those_with_a_verdict() {
        let tally = Tally::of([Some(Holds), Some(Direction), Some(Fails), Some(Holds), None]);
        assert_eq!((tally.share_holding(), tally.share_in_direction()), (Some(0.5), Some(0.75)));
        assert_eq!(Tally::of([None]).share_holding(), None);
    }
}
