//! Writing SVG: elements that close, attributes that are escaped, numbers that are numbers.

/// An SVG document being written.
#[derive(Debug, Default)]
pub struct Svg {
    out: String,
}

/// Attributes of an element.
pub type Attributes<'a> = [(&'a str, String)];

impl Svg {
    /// A document of `width` by `height` pixels that scales with the page and is an image with a name to screen readers.
    pub fn new(width: f64, height: f64, label: &str) -> Svg {
        let mut svg = Svg::default();
        let view = format!("0 0 {} {}", number(width), number(height));
        svg.open(
            "svg",
            &[
                ("viewBox", view),
                ("role", "img".to_owned()),
                ("aria-label", label.to_owned()),
                ("class", "plot".to_owned()),
            ],
        );
        svg
    }

    /// A document that is a file of its own: it names its kind and its size. `class` is that of the whole.
    pub fn file(width: f64, height: f64, label: &str, class: &str) -> Svg {
        let mut svg = Svg::default();
        let (width, height) = (number(width), number(height));
        svg.open(
            "svg",
            &[
                ("xmlns", "http://www.w3.org/2000/svg".to_owned()),
                ("viewBox", format!("0 0 {width} {height}")),
                ("width", width),
                ("height", height),
                ("role", "img".to_owned()),
                ("aria-label", label.to_owned()),
                ("class", class.to_owned()),
            ],
        );
        svg
    }

    /// Markup that is known to be well formed.
    pub fn markup(&mut self, markup: &str) {
        self.out += markup;
    }

    /// A text turned by so many degrees around its place, clockwise.
    pub fn turned(&mut self, at: (f64, f64), degrees: f64, anchor: &str, class: &str, text: &str) {
        let turn = format!("translate({} {}) rotate({})", number(at.0), number(at.1), number(degrees));
        let attributes =
            [("transform", turn), ("text-anchor", anchor.to_owned()), ("class", class.to_owned())];
        self.tag("text", &attributes);
        self.out += &format!(">{}</text>", escape(text));
    }

    /// Opens an element whose content follows; pair with [`Svg::close`].
    pub fn open(&mut self, name: &str, attributes: &Attributes<'_>) {
        self.tag(name, attributes);
        self.out.push('>');
    }

    /// Closes an element.
    pub fn close(&mut self, name: &str) {
        self.out += &format!("</{name}>");
    }

    /// An element without content but, where `tooltip` is not empty, a title that browsers show on hover.
    pub fn shape(&mut self, name: &str, attributes: &Attributes<'_>, tooltip: &str) {
        self.tag(name, attributes);
        if tooltip.is_empty() {
            self.out += "/>";
        } else {
            self.out += &format!("><title>{}</title></{name}>", escape(tooltip));
        }
    }

    /// A text at a place; `anchor` is `start`, `middle` or `end`.
    pub fn text(&mut self, x: f64, y: f64, anchor: &str, class: &str, text: &str) {
        self.tag(
            "text",
            &[
                ("x", number(x)),
                ("y", number(y)),
                ("text-anchor", anchor.to_owned()),
                ("class", class.to_owned()),
            ],
        );
        self.out += &format!(">{}</text>", escape(text));
    }

    /// A name at a place, cut to `cells` characters; the whole name as its tooltip when cut.
    pub fn name(&mut self, x: f64, y: f64, anchor: &str, name: &str, cells: usize) {
        let shown = crate::format::one_line(name, cells);
        self.tag("text", &[("x", number(x)), ("y", number(y)), ("text-anchor", anchor.to_owned())]);
        let title = if shown == name { String::new() } else { format!("<title>{}</title>", escape(name)) };
        self.out += &format!(">{title}{}</text>", escape(&shown));
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(number);
        self.shape(
            "line",
            &[("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2), ("class", class.to_owned())],
            "",
        );
    }

    /// The document.
    pub fn finish(mut self) -> String {
        self.close("svg");
        self.out
    }

    fn tag(&mut self, name: &str, attributes: &Attributes<'_>) {
        self.out += &format!("<{name}");
        for (key, value) in attributes {
            self.out += &format!(" {key}=\"{}\"", escape(value));
        }
    }
}

/// A coordinate with one decimal. What is not finite becomes 0: a plot shows it at the origin and the tables show it as absent.
pub fn number(value: f64) -> String {
    let rounded = if value.is_finite() { (value * 10.0).round() / 10.0 } else { 0.0 };
    // Adding zero turns -0 into 0.
    format!("{}", rounded + 0.0)
}

/// Text fit for element content and quoted attributes. Control characters, which XML forbids, become `?`.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c if c.is_control() => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_element_or_attribute() {
        let mut svg = Svg::new(10.0, 10.0, "a\" onload=\"x");
        svg.text(0.0, 0.0, "start", "", "</text><script>");
        let text = svg.finish();
        assert!(!text.contains("<script>") && !text.contains("\" onload="), "{text}");
    }

    #[test]
    fn coordinates_are_finite_and_short() {
        assert_eq!(number(1.0 / 3.0), "0.3");
        assert_eq!(number(f64::NAN), "0");
        assert_eq!(number(f64::INFINITY), "0");
        assert_eq!(number(-0.01), "0");
    }
}
