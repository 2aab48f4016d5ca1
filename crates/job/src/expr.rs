//! The small expression language of catalog entries: whole numbers, names, arithmetic,
//! comparison, `min`, `max` and `if`. Total: every expression ends, with a number or an error.

use std::collections::BTreeMap;

/// Names and their numbers.
pub type Scope = BTreeMap<String, i64>;

const MAX_DEPTH: usize = 32;

/// Computes an expression such as `max(1, size / (nr_task + 1))`. Comparisons give 1 or 0.
///
/// # Errors
/// What is wrong, in words: an unknown name, a division by zero, an overflow, bad syntax.
pub fn evaluate(text: &str, scope: &Scope) -> Result<i64, String> {
    let mut parser = Parser {
        rest: text,
        scope,
        depth: 0,
    };
    let value = parser.comparison()?;
    parser.blanks();
    if parser.rest.is_empty() {
        Ok(value)
    } else {
        Err(format!("`{}` is left over in `{text}`", parser.rest))
    }
}

/// Fills `{...}` in a template: a name of `texts` gives its text, anything else is an expression.
///
/// # Errors
/// An unclosed brace, or an expression without a value.
pub fn fill(
    template: &str,
    texts: &BTreeMap<String, String>,
    scope: &Scope,
) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (inside, behind) = after
            .split_once('}')
            .ok_or_else(|| format!("`{{` is never closed in `{template}`"))?;
        out.push_str(before);
        match texts.get(inside.trim()) {
            Some(text) => out.push_str(text),
            None => out.push_str(&evaluate(inside, scope)?.to_string()),
        }
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

struct Parser<'a> {
    rest: &'a str,
    scope: &'a Scope,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.blanks();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn comparison(&mut self) -> Result<i64, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("nested deeper than {MAX_DEPTH} levels"));
        }
        let left = self.sum()?;
        // Two-character operators first, since `>` begins `>=`.
        let operator = [">=", "<=", "==", "!=", ">", "<"]
            .into_iter()
            .find(|op| self.eat(op));
        let value = match operator {
            None => left,
            Some(operator) => {
                let right = self.sum()?;
                i64::from(match operator {
                    ">=" => left >= right,
                    "<=" => left <= right,
                    "==" => left == right,
                    "!=" => left != right,
                    ">" => left > right,
                    _ => left < right,
                })
            }
        };
        self.depth -= 1;
        Ok(value)
    }

    fn sum(&mut self) -> Result<i64, String> {
        let mut value = self.product()?;
        loop {
            let next = if self.eat("+") {
                value.checked_add(self.product()?)
            } else if self.eat("-") {
                value.checked_sub(self.product()?)
            } else {
                return Ok(value);
            };
            value = next.ok_or("more than 64 bits can hold")?;
        }
    }

    fn product(&mut self) -> Result<i64, String> {
        let mut value = self.atom()?;
        loop {
            let next = if self.eat("*") {
                value.checked_mul(self.atom()?)
            } else if self.eat("/") {
                match self.atom()? {
                    0 => return Err("division by zero".to_owned()),
                    divisor => value.checked_div(divisor),
                }
            } else {
                return Ok(value);
            };
            value = next.ok_or("more than 64 bits can hold")?;
        }
    }

    fn atom(&mut self) -> Result<i64, String> {
        if self.eat("(") {
            let value = self.comparison()?;
            return if self.eat(")") {
                Ok(value)
            } else {
                Err("`)` is missing".to_owned())
            };
        }
        self.blanks();
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        if word.is_empty() {
            return Err(format!("a number or a name is missing before `{rest}`"));
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return word
                .parse()
                .map_err(|_| format!("`{word}` is not a whole number"));
        }
        if self.eat("(") {
            return self.call(word);
        }
        self.scope
            .get(word)
            .copied()
            .ok_or_else(|| format!("`{word}` has no value"))
    }

    fn call(&mut self, function: &'a str) -> Result<i64, String> {
        let mut arguments = vec![self.comparison()?];
        while self.eat(",") {
            arguments.push(self.comparison()?);
        }
        if !self.eat(")") {
            return Err("`)` is missing".to_owned());
        }
        match (function, arguments.as_slice()) {
            ("min", [a, b]) => Ok(*a.min(b)),
            ("max", [a, b]) => Ok(*a.max(b)),
            ("if", [condition, yes, no]) => Ok(if *condition != 0 { *yes } else { *no }),
            _ => Err(format!(
                "`{function}` with {} arguments is unknown",
                arguments.len()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope {
        [("size", 1024), ("nr_task", 3), ("zero", 0)]
            .map(|(k, v)| (k.to_owned(), v))
            .into()
    }

    #[test]
    fn arithmetic_follows_the_usual_order() {
        for (text, value) in [
            ("1 + 2 * 3", 7),
            ("(1 + 2) * 3", 9),
            ("size / (nr_task + 1)", 256),
            ("max(1, zero)", 1),
            ("if(size > 1000, 5, 6)", 5),
            ("if(nr_task >= 3, min(2, 1), 9)", 1),
            ("10 - 2 - 3", 5),
            ("zero == 0", 1),
        ] {
            assert_eq!(evaluate(text, &scope()), Ok(value), "{text}");
        }
    }

    #[test]
    fn wrong_expressions_say_why() {
        for (text, reason) in [
            ("size / zero", "division by zero"),
            ("colour", "`colour` has no value"),
            ("9223372036854775807 + 1", "more than 64 bits can hold"),
            ("(1", "`)` is missing"),
            ("", "a number or a name is missing before ``"),
            ("1 2", "`2` is left over in `1 2`"),
        ] {
            assert_eq!(evaluate(text, &scope()), Err(reason.to_owned()), "{text}");
        }
        assert!(evaluate(&"(".repeat(100_000), &scope()).is_err());
    }

    #[test]
    fn templates_take_texts_and_expressions() {
        let texts = BTreeMap::from([("mode".to_owned(), "process".to_owned())]);
        assert_eq!(
            fill("--{mode}={size / 2}k", &texts, &scope()),
            Ok("--process=512k".to_owned())
        );
        assert!(fill("{mode", &texts, &scope()).is_err());
    }
}
