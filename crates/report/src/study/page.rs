//! The page of a study, and the index of them all. No script, nothing fetched.

use super::{Reproduction, checks, names, svg, thumbnail};
use crate::format::ABSENT;
use crate::plot::svg::escape;
use minijinja::{Environment, Value, context};
use planewise_study::outcome::{Check, Outcome, Paper, Size, Table};
use planewise_study::{Tally, claims};
use serde::Serialize;

/// When a number holds.
pub(super) const RULE: &str = "A number holds within ten points (of a ratio or share up to 1) or ten per cent of the published one and on its \
    side of no effect; it holds in direction with a tenth of the published effect or more on that side; a statement holds when its formula does. \
    A self-test (○) finds what the study itself set up, as the paper's drives are not known: it says that the method works, not that a published number holds.";

/// The same where nothing was published.
const FORMULA_RULE: &str =
    "A number holds when it is as near to the formula as the study says: at most ten per cent.";

const CSS: [&str; 2] =
    [include_str!("../../templates/report.css"), include_str!("../../templates/study.css")];

/// The page of a study as HTML. The same outcome gives the same bytes.
pub fn page(outcome: &Outcome) -> String {
    let stems = names::stems(outcome);
    let (figure_stems, table_stems) = stems.split_at(outcome.figures.len());
    let figures = outcome.figures.iter().zip(figure_stems).map(|(figure, stem)| FigureOfPage {
        title: &figure.title,
        caption: rich(&figure.caption),
        svg: Value::from_safe_string(svg(figure)),
        stem,
    });
    let tally = checks::tally(outcome);
    render(
        include_str!("../../templates/study.html"),
        context! {
        given => if outcome.paper == Paper::Analysis { "by the formula" } else { "published" },
        rule => if outcome.paper == Paper::Analysis { FORMULA_RULE } else { RULE },
            style => style(),
            title => &outcome.title,
            place => place(outcome),
            heading => outcome.paper.heading(),
            citation => outcome.paper.citation(),
            summary => checks::sentence(tally, "numbers"),
            tally => Counts::from(tally),
            about => paragraphs(&outcome.about),
            figures => figures.collect::<Vec<_>>(),
            checks => outcome.checks.iter().map(CheckOfPage::from).collect::<Vec<_>>(),
            has_claims => outcome.checks.iter().any(|check| check.claim.is_some()),
            has_linux => outcome.checks.iter().any(|check| check.in_linux.is_some()),
            tables => outcome.tables.iter().zip(table_stems).map(|(table, stem)| TableOfPage::from(table, stem)).collect::<Vec<_>>(),
            size => size(outcome.size),
            variables => &outcome.variables,
            sources => paragraphs(&outcome.sources),
            overloaded => &outcome.overloaded,
            runs => outcome.runs,
            commands => &outcome.commands,
            runs => crate::format::count(outcome.runs as u64),
            id => &outcome.id,
            has_pixels => cfg!(feature = "png"),
        },
    )
}

/// The index of all studies as HTML, with every claim's verdict.
pub fn index(of: &Reproduction<'_>) -> String {
    let claims = claims(of.outcomes);
    let tally = |analysis: bool| {
        Tally::of(claims.iter().filter(|of| (of.paper == Paper::Analysis) == analysis).map(|of| of.verdict))
    };
    let papers = Paper::ALL.into_iter().filter_map(|paper| PaperOfIndex::of(paper, of));
    let rows: Vec<ClaimRow<'_>> = claims.iter().map(ClaimRow::from).collect();
    let groups = Paper::ALL
        .map(|paper| (paper.heading(), rows.iter().filter(|row| row.paper == paper).collect::<Vec<_>>()));
    let groups: Vec<_> = groups.into_iter().filter(|(_, rows)| !rows.is_empty()).collect();
    let mut sizes: Vec<&str> = of.outcomes.iter().map(|outcome| size(outcome.size)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    // Nobody published the closed forms.
    let published = of.outcomes.iter().filter(|outcome| outcome.paper != Paper::Analysis);
    let numbers = Tally::of(published.flat_map(|outcome| &outcome.checks).map(|check| check.verdict));
    render(
        include_str!("../../templates/study-index.html"),
        context! {
            style => style(),
            claims => Counts::from(tally(false)),
            forms => Counts::from(tally(true)),
            forms_summary => checks::sentence(tally(true), "closed forms"),
            numbers => Counts::from(numbers),
            papers => papers.collect::<Vec<_>>(),
            groups => groups,
            missing => of.missing.iter().map(|of| context! {
                title => &of.title, id => &of.id, why => &of.why,
                place => [of.paper.heading(), &of.figure].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", "),
            }).collect::<Vec<_>>(),
            sizes => sizes,
            studies => of.outcomes.len(),
            unasked => of.unasked,
            runs => crate::format::count(of.outcomes.iter().map(|outcome| outcome.runs as u64).sum()),
            command => of.command,
        },
    )
}

fn render(template: &str, context: Value) -> String {
    let mut environment = Environment::new();
    // The name ends in .html: every value is escaped unless marked as safe.
    environment.add_template("study.html", template).expect("the template is tested");
    let page = environment.get_template("study.html").expect("just added");
    page.render(context).expect("the template takes any studies: it is rendered for odd ones in the tests")
}

fn style() -> Value {
    Value::from_safe_string(CSS.concat())
}

fn size(size: Size) -> &'static str {
    match size {
        Size::Quick => "quick",
        Size::Full => "full",
    }
}

/// Figure and section in the document.
fn place(outcome: &Outcome) -> String {
    let section =
        if outcome.section.is_empty() { String::new() } else { format!("section {}", outcome.section) };
    let parts = [outcome.figure.clone(), section];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

fn paragraphs(texts: &[String]) -> Vec<Value> {
    texts.iter().map(|text| rich(text)).collect()
}

/// Text in which what stands between backticks is code.
fn rich(text: &str) -> Value {
    let mut out = String::new();
    let parts: Vec<&str> = text.split('`').collect();
    for (index, part) in parts.iter().enumerate() {
        match (index % 2 == 1, index + 1 == parts.len()) {
            (true, false) => out += &format!("<code>{}</code>", escape(part)),
            // A backtick without its pair is one.
            (true, true) => out += &format!("`{}", escape(part)),
            _ => out += &escape(part),
        }
    }
    Value::from_safe_string(out)
}

#[derive(Serialize)]
struct FigureOfPage<'a> {
    title: &'a str,
    caption: Value,
    svg: Value,
    stem: &'a str,
}

/// How many hold, for people.
#[derive(Serialize)]
struct Counts {
    holds: usize,
    direction: usize,
    fails: usize,
    judged: usize,
    in_direction: String,
    holding: String,
}

impl From<Tally> for Counts {
    fn from(tally: Tally) -> Counts {
        let percent =
            |share: Option<f64>| share.map_or(ABSENT.to_owned(), |share| format!("{:.0} %", share * 100.0));
        Counts {
            holds: tally.holds,
            direction: tally.direction,
            fails: tally.fails,
            judged: tally.judged(),
            in_direction: percent(tally.share_in_direction()),
            holding: percent(tally.share_holding()),
        }
    }
}

#[derive(Serialize)]
struct VerdictOfPage {
    class: &'static str,
    sign: &'static str,
    word: &'static str,
}

impl From<Option<planewise_study::Verdict>> for VerdictOfPage {
    fn from(verdict: Option<planewise_study::Verdict>) -> VerdictOfPage {
        VerdictOfPage {
            class: checks::class(verdict),
            sign: checks::sign(verdict),
            word: checks::word(verdict),
        }
    }
}

#[derive(Serialize)]
struct CheckOfPage<'a> {
    claim: &'a str,
    what: &'a str,
    published: &'a str,
    measured: &'a str,
    deviation: String,
    verdict: VerdictOfPage,
    in_linux: &'a str,
    why: Vec<Value>,
}

impl<'a> From<&'a Check> for CheckOfPage<'a> {
    fn from(check: &'a Check) -> CheckOfPage<'a> {
        CheckOfPage {
            claim: check.claim.as_deref().unwrap_or_default(),
            what: &check.what,
            published: &check.published,
            measured: &check.measured,
            deviation: checks::deviation(check).unwrap_or_default(),
            verdict: check.verdict.into(),
            in_linux: check.in_linux.as_deref().unwrap_or_default(),
            why: paragraphs(&check.why),
        }
    }
}

#[derive(Serialize)]
struct TableOfPage<'a> {
    title: &'a str,
    columns: &'a [String],
    rows: Vec<(&'a str, Vec<String>)>,
    stem: &'a str,
}

impl<'a> TableOfPage<'a> {
    fn from(table: &'a Table, stem: &'a str) -> TableOfPage<'a> {
        let number = |value: &Option<f64>| match value {
            Some(value) if value.abs() >= 1e12 => super::scale::plain(*value),
            Some(value) if value.is_finite() => format!("{value:.*}", table.digits.min(12)),
            _ => ABSENT.to_owned(),
        };
        let rows =
            table.rows.iter().map(|(name, values)| (name.as_str(), values.iter().map(number).collect()));
        TableOfPage { title: &table.title, columns: &table.columns, rows: rows.collect(), stem }
    }
}

#[derive(Serialize)]
struct PaperOfIndex<'a> {
    heading: &'static str,
    citation: &'static str,
    studies: Vec<StudyOfIndex<'a>>,
}

#[derive(Serialize)]
struct StudyOfIndex<'a> {
    page: String,
    title: &'a str,
    place: String,
    counts: Counts,
    thumbnail: Option<Value>,
}

impl<'a> PaperOfIndex<'a> {
    fn of(paper: Paper, of: &Reproduction<'a>) -> Option<PaperOfIndex<'a>> {
        let of_paper = of.outcomes.iter().filter(|outcome| outcome.paper == paper);
        let studies: Vec<_> = of_paper
            .map(|outcome| StudyOfIndex {
                page: names::page(&outcome.id),
                title: &outcome.title,
                place: outcome.figure.clone(),
                counts: checks::tally(outcome).into(),
                thumbnail: outcome.figures.first().map(|figure| Value::from_safe_string(thumbnail(figure))),
            })
            .collect();
        (!studies.is_empty()).then(|| PaperOfIndex {
            heading: paper.heading(),
            citation: paper.citation(),
            studies,
        })
    }
}

#[derive(Serialize)]
struct ClaimRow<'a> {
    #[serde(skip)]
    paper: Paper,
    claim: &'a str,
    what: &'a str,
    published: &'a str,
    measured: &'a str,
    deviation: String,
    verdict: VerdictOfPage,
    numbers: String,
    page: String,
}

impl<'a> From<&planewise_study::ClaimVerdict<'a>> for ClaimRow<'a> {
    fn from(of: &planewise_study::ClaimVerdict<'a>) -> ClaimRow<'a> {
        let (outcome, check) = of.deciding();
        ClaimRow {
            paper: of.paper,
            claim: of.claim,
            what: &check.what,
            published: &check.published,
            measured: &check.measured,
            deviation: checks::deviation(check).unwrap_or_default(),
            verdict: of.verdict.into(),
            numbers: checks::holding(of.tally()),
            page: names::page(&outcome.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{Missing, samples};

    #[test]
    fn a_self_test_is_called_one_and_counts_for_nothing_published() {
        let mut outcome = samples::outcomes().remove(0);
        for check in &mut outcome.checks {
            check.verdict = Some(planewise_study::Verdict::SelfTest);
        }
        let text = page(&outcome);
        assert!(text.contains("○ self-test passed") && !text.contains("✓ holds"), "{text}");
        assert!(text.contains("self-tests of the method pass"), "{text}");
        let of =
            Reproduction { unasked: 0, outcomes: &[outcome], missing: &[], command: "", divergence: &[] };
        let text = index(&of);
        assert!(text.contains("○ self-test passed") && !text.contains("claims of the papers hold"), "{text}");
    }

    #[test]
    fn overloaded_runs_are_named_where_there_are_any() {
        let mut outcome = samples::outcomes().remove(0);
        assert!(!page(&outcome).contains("are overloaded"));
        outcome.overloaded = vec!["piq (noop, hm_0): stable at --scale-time 1.4".to_owned()];
        let text = page(&outcome);
        assert!(
            text.contains("runs are overloaded") && text.contains("stable at --scale-time 1.4"),
            "{text}"
        );
    }

    #[test]
    fn a_page_has_its_numbers_verdicts_reasons_and_commands() {
        let outcomes = samples::outcomes();
        let page = page(&outcomes[0]);
        for words in [
            "Read and write latency of PIQ and its parts",
            "Figures 8 to 11, section V.B",
            "3 of 5 numbers hold, 1 in direction, 1 does not",
            "+2.9 points",
            "does not hold",
            "✗",
            "href=\"piq-fig8-read-latency.svg\"",
            "href=\"piq-fig8-volumes.csv\"",
            "<code>--trace-dir</code>",
            "planewise compare --trace {volume}",
            "href=\"index.html\"",
            "look-alikes",
        ] {
            assert!(page.contains(words), "{words}");
        }
        assert!(!page.contains("<script") && !page.contains("NaN") && !page.contains("src=\"http"));
        assert_eq!(page, super::page(&outcomes[0]));
    }

    #[test]
    fn a_page_has_a_column_for_a_real_linux_where_there_is_anything_for_it() {
        let mut outcome = samples::outcomes().swap_remove(0);
        assert!(!page(&outcome).contains("in a real Linux"));
        outcome.checks[0].in_linux = Some("0.61 & more".to_owned());
        let text = page(&outcome);
        assert!(text.contains(">0.61 &amp; more</td>"), "{text}");
        assert_eq!(text.matches("in a real Linux").count(), 2, "the head and the one number");
    }

    #[test]
    fn odd_studies_have_pages_too_and_names_are_escaped() {
        let mut outcome = samples::outcomes().swap_remove(0);
        outcome.title = "<script>alert(1)</script>".to_owned();
        outcome.about = vec!["a ` alone & <b>".to_owned()];
        outcome.checks[0].what = "<i>".to_owned();
        outcome.tables[0].rows[0].1 = vec![Some(f64::NAN), Some(1e300)];
        let page = super::page(&outcome);
        assert!(!page.contains("<script") && !page.contains("<i>") && !page.contains("NaN"));
        assert!(page.contains("a ` alone &amp; &lt;b&gt;"));
        outcome.checks.clear();
        outcome.figures.clear();
        outcome.tables.clear();
        outcome.commands.clear();
        assert!(super::page(&outcome).contains("No numbers to compare with were published"));
    }

    #[test]
    fn the_index_counts_claims_and_names_what_was_not_run() {
        let outcomes = samples::outcomes();
        let missing = [Missing {
            id: "gc-table3".to_owned(),
            title: "Table of <volumes>".to_owned(),
            paper: Paper::Gc,
            figure: "Table III".to_owned(),
            why: "not asked for".to_owned(),
        }];
        let of = Reproduction {
            unasked: 0,
            outcomes: &outcomes,
            missing: &missing,
            command: "planewise reproduce",
            divergence: &[],
        };
        let page = index(&of);
        for words in [
            "href=\"piq-fig8.html\"",
            "Table of &lt;volumes&gt;",
            "not asked for",
            "piq.fig8.piq_r",
            "86 %",
            "57 %",
        ] {
            assert!(page.contains(words), "{words}\n{page}");
        }
        assert_eq!(page.matches("<svg").count(), 3);
        let nothing = Reproduction { unasked: 0, outcomes: &[], missing: &[], command: "", divergence: &[] };
        assert!(index(&nothing).contains("No study was run"));
    }
}
