//! The talk with a model about what some records teach, without I/O: it says what to ask, is handed the reply, and ends
//! with lessons whose every word the host has checked. What has the wrong shape is asked for again; what the records
//! do not show is dropped.

mod answer;
mod ground;
mod material;
mod schema;

use super::course::{Course, Over, Step, Way};
use super::reflect::Note;
use crate::domain::{Finding, Reply, Request, Rung};
use crate::privacy::Gate;
use crate::prompt::BatchPrompt;
use std::sync::Arc;

pub use material::{MATERIAL_RECORDS_MAX, MATERIAL_TOKENS_MAX, MATERIALS_MAX, Material, materials};
pub use schema::{
    Lesson, REFLECT_SCHEMA_VERSION, REFLECT_TOOL_NAME, WriteReflection, reflect_schema_files,
};

/// Lessons of one batch that are kept; the prompt says so too.
pub const LESSONS_MAX: usize = 12;
/// Letters of a lesson.
pub const LESSON_LETTERS_MAX: usize = 300;
/// Records that one lesson rests on: together, more of them would hold any word.
pub const LESSON_RECORDS_MAX: usize = 8;

/// What all batches have in common.
#[derive(Debug)]
pub struct Reflecting {
    /// Who is asked, and how.
    pub way: Way,
    gate: Gate,
}

impl Reflecting {
    /// Asks `model` with `prompt`, about texts that are mostly in `language`; what it writes goes through `gate`.
    pub fn new(
        model: impl Into<String>,
        language: &str,
        prompt: Arc<BatchPrompt>,
        gate: Gate,
    ) -> Reflecting {
        Reflecting { way: Way::new(model.into(), language, (prompt, schema::tool())), gate }
    }

    /// What passes what is shown and what is answered.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }
}

/// What a batch came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Learned {
    /// The lessons that are proven, as they were handed over.
    pub lessons: Vec<Note>,
    /// Whether it was an answer: lessons that are proven, or in good shape none at all.
    pub usable: bool,
    /// What was put right, refused or could not be had.
    pub findings: Vec<Finding>,
    /// The rung of the last request; worth remembering if the answer is usable.
    pub rung: Rung,
    /// How many requests it took.
    pub asks: u32,
}

/// The talk about one batch.
#[derive(Debug)]
pub struct LookBack {
    reflecting: Arc<Reflecting>,
    material: Material,
    course: Course,
    lessons: Vec<Note>,
    /// Whether the last answer had the shape that was asked for, and nothing in it was refused.
    sound: bool,
    unproven: usize,
}

impl LookBack {
    /// Begins with `rung`, the best that the endpoint is known to take.
    pub fn start(
        reflecting: &Arc<Reflecting>,
        material: Material,
        rung: Rung,
    ) -> (LookBack, Request) {
        let mut talk = LookBack {
            reflecting: Arc::clone(reflecting),
            course: Course::start(reflecting.way.prompt.batch(&material.text), rung),
            material,
            lessons: Vec::new(),
            sound: false,
            unproven: 0,
        };
        let request = talk.request();
        (talk, request)
    }

    /// Takes the reply, and says what is next.
    pub fn reply(&mut self, reply: &Reply) -> Step<Learned> {
        let mut answer = answer::read(reply, self.course.rung);
        if !answer.shaped {
            self.sound = false;
            let next = self.course.after_nothing(reply);
            return self.go_on(next);
        }
        let checked = answer.learn(&self.material, &self.reflecting.gate, &mut self.lessons);
        self.course.note(answer.findings);
        self.sound = checked.problems.is_empty();
        self.unproven += checked.unproven;
        if self.course.mends(reply, checked.problems) {
            return Step::Ask(self.request());
        }
        self.finish()
    }

    /// The endpoint does not take this way of asking: tries the next.
    pub fn rung_refused(&mut self) -> Step<Learned> {
        let next = self.course.lower();
        self.go_on(next)
    }

    /// The last request cannot be made at all: ends with what there is.
    pub fn stop(&mut self) -> Step<Learned> {
        self.go_on(Err(("no-call", "the question could not be asked")))
    }

    /// How many lessons are kept already, which [`LookBack::stop`] would end with.
    pub fn kept(&self) -> usize {
        self.lessons.len()
    }

    fn go_on(&mut self, next: Result<(), Over>) -> Step<Learned> {
        match next {
            Ok(()) => Step::Ask(self.request()),
            Err((rule, detail)) => {
                self.course.warn(rule, detail);
                self.finish()
            }
        }
    }

    fn finish(&mut self) -> Step<Learned> {
        let lessons = std::mem::take(&mut self.lessons);
        Step::Done(Learned {
            usable: !lessons.is_empty() || (self.sound && self.unproven == 0),
            lessons,
            findings: std::mem::take(&mut self.course.findings),
            rung: self.course.rung,
            asks: self.course.asks,
        })
    }

    fn request(&mut self) -> Request {
        self.course.ask(&self.reflecting.way, self.lessons.len())
    }
}

#[cfg(test)]
mod tests;
