//! From text to an expression.

use super::functions;
use planewise_model::names;

/// A formula.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A number.
    Number(f64),
    /// A metric of a set of runs (`main.read.latency_ns.mean`), or a name that the study gave to a formula.
    Path(String),
    /// Only what has these labels.
    Select(Box<Expression>, Vec<Selector>),
    /// The negative.
    Negate(Box<Expression>),
    /// 1 where it is 0.
    Not(Box<Expression>),
    /// Two, by equal labels.
    Binary(Operator, Box<Expression>, Box<Expression>),
    /// 1 where a metric is this text.
    Is(String, String),
    /// A function.
    Call {
        /// Its name.
        function: String,
        /// What it is given.
        arguments: Vec<Expression>,
        /// The labels it goes over, or leaves.
        labels: Option<Labels>,
    },
}

/// The labels of a function.
#[derive(Clone, Debug, PartialEq)]
pub enum Labels {
    /// `over depth`: these go, the others stay.
    Over(Vec<String>),
    /// `by depth`: these stay, the others go.
    By(Vec<String>),
}

/// Which values of a label are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Selector {
    /// The label.
    pub label: String,
    /// How it is compared.
    pub comparison: Operator,
    /// With what; one of several for `=`.
    pub values: Vec<String>,
}

/// Operators of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `or`
    Or,
    /// `and`
    And,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
    /// `==`
    Equal,
    /// `!=`
    Differs,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

impl Operator {
    /// The result; truths are 1 and 0.
    pub fn apply(self, a: f64, b: f64) -> f64 {
        let truth = |holds: bool| f64::from(u8::from(holds));
        match self {
            Operator::Or => truth(a != 0.0 || b != 0.0),
            Operator::And => truth(a != 0.0 && b != 0.0),
            Operator::Less => truth(a < b),
            Operator::AtMost => truth(a <= b),
            Operator::Greater => truth(a > b),
            Operator::AtLeast => truth(a >= b),
            Operator::Equal => truth(a == b),
            Operator::Differs => truth(a != b),
            Operator::Add => a + b,
            Operator::Subtract => a - b,
            Operator::Multiply => a * b,
            Operator::Divide => a / b,
        }
    }
}

/// Reads a formula.
///
/// # Errors
/// What is wrong, with the place.
pub fn parse(text: &str) -> Result<Expression, String> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let expression = parser.any()?;
    parser.blanks();
    if parser.at < text.len() {
        return Err(parser.wrong("an operator, or the end"));
    }
    Ok(expression)
}

/// Brackets inside one another at most: what people write has a handful, and nothing overflows the stack.
const DEPTH_MAX: u32 = 64;

/// Operators by how strongly they bind, the weakest first; in each, the longer before what they begin with.
const LEVELS: [&[(&str, Operator)]; 5] = [
    &[("or", Operator::Or)],
    &[("and", Operator::And)],
    &[
        ("<=", Operator::AtMost),
        (">=", Operator::AtLeast),
        ("==", Operator::Equal),
        ("!=", Operator::Differs),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("*", Operator::Multiply), ("/", Operator::Divide)],
];

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn wrong(&self, allowed: &str) -> String {
        let found = self.rest().split_whitespace().next().unwrap_or("the end");
        format!("formula '{}': found '{found}' at character {}; allowed: {allowed}", self.text, self.at + 1)
    }

    /// Takes a word or a sign if it is next. Words end where a letter does not follow.
    fn take(&mut self, token: &str) -> bool {
        self.blanks();
        let Some(rest) = self.rest().strip_prefix(token) else { return false };
        let is_word = token.ends_with(|c: char| c.is_alphanumeric());
        if is_word && rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.') {
            return false;
        }
        self.at += token.len();
        true
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.take(token) { Ok(()) } else { Err(self.wrong(&format!("'{token}'"))) }
    }

    fn any(&mut self) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!(
                "formula: found more than {DEPTH_MAX} brackets inside one another; allowed: up to that"
            ));
        }
        let found = self.level(0);
        self.depth -= 1;
        found
    }

    fn level(&mut self, level: usize) -> Result<Expression, String> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.level(level + 1)?;
        while let Some((_, operator)) = operators.iter().find(|(token, _)| self.take(token)) {
            let right = self.level(level + 1)?;
            left = Expression::Binary(*operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!(
                "formula: found more than {DEPTH_MAX} signs before one another; allowed: up to that"
            ));
        }
        let found = if self.take("-") {
            Expression::Negate(Box::new(self.unary()?))
        } else if self.take("not") {
            Expression::Not(Box::new(self.unary()?))
        } else {
            self.selected()?
        };
        self.depth -= 1;
        Ok(found)
    }

    fn selected(&mut self) -> Result<Expression, String> {
        let mut inner = self.primary()?;
        while self.take("[") {
            let selectors = self.selectors()?;
            inner = Expression::Select(Box::new(inner), selectors);
        }
        Ok(inner)
    }

    fn selectors(&mut self) -> Result<Vec<Selector>, String> {
        let mut selectors = Vec::new();
        loop {
            let label = self.name()?;
            self.blanks();
            let signs = [
                ("!=", Operator::Differs),
                ("<=", Operator::AtMost),
                (">=", Operator::AtLeast),
                ("=", Operator::Equal),
                ("<", Operator::Less),
                (">", Operator::Greater),
            ];
            let Some((sign, comparison)) = signs.into_iter().find(|(sign, _)| self.rest().starts_with(sign))
            else {
                return Err(self.wrong("=, !=, <, <=, >, >="));
            };
            self.at += sign.len();
            let end = self.rest().find([',', ']']).ok_or_else(|| self.wrong("',' or ']'"))?;
            let values: Vec<String> =
                self.rest()[..end].split('|').map(|value| value.trim().to_owned()).collect();
            if values.iter().any(String::is_empty) {
                return Err(self.wrong("a value"));
            }
            self.at += end;
            selectors.push(Selector { label, comparison, values });
            if self.take("]") {
                return Ok(selectors);
            }
            self.expect(",")?;
        }
    }

    /// A name of a label, a function or a part of a path.
    fn name(&mut self) -> Result<String, String> {
        self.blanks();
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if end == 0 || rest.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(self.wrong("a name"));
        }
        self.at += end;
        Ok(rest[..end].to_owned())
    }

    fn primary(&mut self) -> Result<Expression, String> {
        self.blanks();
        if self.take("(") {
            let inner = self.any()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return self.number();
        }
        let mut path = self.name().map_err(|_| self.wrong("a number, a name or '('"))?;
        if self.rest().starts_with('(') {
            self.at += 1;
            return self.call(path);
        }
        while self.rest().starts_with('.') {
            self.at += 1;
            let rest = self.rest();
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            if end == 0 {
                return Err(self.wrong("a part of a path"));
            }
            path += ".";
            path += &rest[..end];
            self.at += end;
        }
        Ok(Expression::Path(path))
    }

    fn number(&mut self) -> Result<Expression, String> {
        let rest = self.rest();
        let mut end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        if let Some(exponent) = rest[end..].strip_prefix(['e', 'E']) {
            let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
            let length = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            if length > 0 {
                end = rest.len() - digits.len() + length;
            }
        }
        let value = rest[..end].parse().map_err(|_| self.wrong("a number such as 12.5 or 1e6"))?;
        self.at += end;
        Ok(Expression::Number(value))
    }

    fn call(&mut self, function: String) -> Result<Expression, String> {
        if function == "is" {
            let Expression::Path(path) = self.primary()? else { return Err(self.wrong("a metric")) };
            self.expect(",")?;
            let end = self.rest().find(')').ok_or_else(|| self.wrong("')'"))?;
            let text = self.rest()[..end].trim().to_owned();
            self.at += end + 1;
            return Ok(Expression::Is(path, text));
        }
        let arity = functions::arity(&function)
            .ok_or_else(|| names::unknown("function", &function, functions::names()).to_string())?;
        let mut arguments = vec![self.any()?];
        while self.take(",") {
            arguments.push(self.any()?);
        }
        let kind: Option<fn(Vec<String>) -> Labels> = if self.take("over") {
            Some(Labels::Over)
        } else if self.take("by") {
            Some(Labels::By)
        } else {
            None
        };
        let labels = match kind {
            None => None,
            Some(kind) => {
                let mut labels = vec![self.name()?];
                while self.take(",") {
                    labels.push(self.name()?);
                }
                Some(kind(labels))
            }
        };
        self.expect(")")?;
        if !arity.contains(&arguments.len()) {
            return Err(format!(
                "formula '{}': found {} arguments of {function}; allowed: {} to {}",
                self.text,
                arguments.len(),
                arity.start(),
                arity.end()
            ));
        }
        Ok(Expression::Call { function, arguments, labels })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_people_write_is_read() {
        for text in [
            "mean(main.read.latency_ns.mean[scheduler=piq+] / main.read.latency_ns.mean[scheduler=noop])",
            "count(main.utilization.chip.active[scheduler=noop] < 0.2) >= 8 and not 1 == 2",
            "argmax(a.b[size=4g, depth<=16] over depth)",
            "mean(a.b by volume, scheduler) * 1e-6 - -2",
            "is(probe.findings.mapping.value, write-order)",
            "all(a.b[stride=9|19|29] < 2.5)",
            "(1 + 2) * 3",
        ] {
            parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (text, word) in [
            ("", "the end"),
            ("mean(a.b", "')'"),
            ("meen(a.b)", "mean"),
            ("a.b[x~1]", "=, !="),
            ("a.b[x=", "',' or ']'"),
            ("1 2", "operator"),
            ("mean(1, 2)", "arguments"),
            ("a.", "part of a path"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
        assert!(parse(&"(".repeat(1000)).is_err());
        assert!(parse(&"-".repeat(100_000)).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-z0-9.()\\[\\]=<>+*/ ,é|-]{0,40}") {
            let _ = parse(&text);
        }
    }
}
