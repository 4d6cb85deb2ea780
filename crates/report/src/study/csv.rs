//! The numbers of figures and tables as CSV (RFC 4180, lines end in a line feed).

use planewise_study::outcome::{Figure, Table};

/// A column for x and one for each series; `NAME (published)` beside it where the document gives numbers; one for each mark, the same in
/// all rows. Fields without a value are empty. Places have their names, also those where nothing was measured.
pub fn csv(figure: &Figure) -> String {
    let mut header = vec![if figure.x.label.is_empty() { "x".to_owned() } else { figure.x.label.clone() }];
    let mut columns: Vec<&[(f64, f64)]> = Vec::new();
    for series in &figure.series {
        header.push(series.name.clone());
        columns.push(&series.points);
        if !series.published.is_empty() {
            header.push(format!("{} (published)", series.name));
            columns.push(&series.published);
        }
    }
    header.extend(figure.marks.iter().map(|mark| mark.name.clone()));
    let mut out = line(&header);
    for (x, name) in rows(figure, &columns) {
        let value = |points: &&[(f64, f64)]| {
            points.iter().find(|point| point.0 == x).map_or(String::new(), |point| number(point.1))
        };
        let marks = figure.marks.iter().map(|mark| number(mark.y));
        let fields: Vec<String> =
            std::iter::once(name).chain(columns.iter().map(value)).chain(marks).collect();
        out += &line(&fields);
    }
    out
}

/// The table with its numbers unrounded.
pub fn table_csv(table: &Table) -> String {
    let mut out = line(&table.columns);
    for (name, values) in &table.rows {
        let values = values.iter().map(|value| value.map_or(String::new(), number));
        let fields: Vec<String> = std::iter::once(name.clone()).chain(values).collect();
        out += &line(&fields);
    }
    out
}

/// Coordinates in rising order with what stands in the first column.
fn rows(figure: &Figure, columns: &[&[(f64, f64)]]) -> Vec<(f64, String)> {
    if let Some(places) = &figure.x.places {
        return places.iter().enumerate().map(|(index, name)| (index as f64, name.clone())).collect();
    }
    let mut values: Vec<f64> =
        columns.iter().copied().flatten().map(|point| point.0).filter(|x| x.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values.into_iter().map(|x| (x, number(x))).collect()
}

/// As short as it reads back to the same number.
fn number(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => String::new(),
        size if size == 0.0 || (1e-5..1e15).contains(&size) => format!("{value}"),
        _ => format!("{value:e}"),
    }
}

fn line(fields: &[String]) -> String {
    fields.iter().map(|field| quoted(field)).collect::<Vec<_>>().join(",") + "\n"
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) || field.trim() != field {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::samples;

    #[test]
    fn places_keep_their_rows_and_names_are_quoted() {
        let mut figure = samples::bars();
        figure.x.places = Some(["a", "b, \"c\"", "d"].map(String::from).into());
        figure.series.truncate(1);
        figure.series[0].name = " x".to_owned();
        figure.series[0].points = vec![(0.0, 0.5), (1.0, f64::NAN)];
        figure.series[0].published = vec![(2.0, 1e300)];
        figure.marks.truncate(1);
        figure.marks[0].name = "mean".to_owned();
        figure.marks[0].y = 0.25;
        assert_eq!(
            csv(&figure),
            "volume,\" x\",\" x (published)\",mean\na,0.5,,0.25\n\"b, \"\"c\"\"\",,,0.25\nd,,1e300,0.25\n"
        );
    }

    #[test]
    fn numbers_are_joined_in_rising_order() {
        let mut figure = samples::lines();
        figure.series.truncate(2);
        figure.series[0].points = vec![(1.0, 2.0), (4.0, 0.0)];
        figure.series[0].published.clear();
        figure.series[1].points = vec![(0.5, 3.25)];
        figure.series[1].published.clear();
        figure.marks.clear();
        let text = csv(&figure);
        let rows: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(rows, ["0.5,,3.25", "1,2,", "4,0,"]);
    }

    #[test]
    fn tables_keep_all_digits_and_gaps() {
        let table = Table {
            name: "t".to_owned(),
            title: String::new(),
            columns: ["volume", "reads\nper s"].map(String::from).into(),
            rows: vec![("a".to_owned(), vec![Some(1.0 / 3.0)]), ("b".to_owned(), vec![None])],
            digits: 1,
        };
        assert_eq!(table_csv(&table), "volume,\"reads\nper s\"\na,0.3333333333333333\nb,\n");
    }
}
