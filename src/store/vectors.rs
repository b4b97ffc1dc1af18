//! Embedding vectors of searchable texts, one per text and model.

use super::journal::write_bill;
use super::record::{RECORD_COLUMNS, RECORD_TABLES};
use super::search::{Lookup, has_own_words, memories, records};
use super::{
    Bill, Columns, Db, Insert, Result, SearchFilter, Store, StoreResult, StoredRecord, Value,
    values,
};
use crate::domain::{Digest, Memory, RequestDigest, Timestamp};
use crate::search::{fields_of_memory, fields_of_record};
use crate::text::truncate;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Maximum number of characters embedded per text; embedding models read some 500 tokens.
const TEXT_LETTERS_MAX: usize = 1_600;
const INTO: Insert = Insert {
    head: "INSERT INTO vectors (no, model, text, vector)",
    width: 4,
    tail: "ON CONFLICT (model, no) DO UPDATE SET text = excluded.text, vector = excluded.vector",
};

/// A text without a vector.
#[derive(Clone, Debug)]
pub(crate) struct UnembeddedText {
    /// Number in the full-text index.
    no: i64,
    pub text: String,
}

impl UnembeddedText {
    fn of(no: i64, fields: [String; 3]) -> UnembeddedText {
        let said = fields.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join("\n");
        UnembeddedText { no, text: truncate::chars(&said, TEXT_LETTERS_MAX).to_owned() }
    }

    fn digest(&self) -> Digest {
        Digest::of(&["embedded", &self.text])
    }
}

/// Normalized embedding, quantized to one signed byte per dimension.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Vector(Vec<u8>);

impl Vector {
    /// Normalizes and quantizes `numbers`; `None` if their length is zero or not finite.
    pub(crate) fn of(numbers: &[f32]) -> Option<Vector> {
        let length = numbers.iter().map(|it| it * it).sum::<f32>().sqrt();
        let has_direction = length.is_finite() && 0.0 < length;
        let byte = |it: &f32| (it / length * f32::from(i8::MAX)).round() as i8 as u8;
        has_direction.then(|| Vector(numbers.iter().map(byte).collect()))
    }

    /// Dot product with a stored vector; larger is nearer. `None` if the dimensions differ.
    fn product(&self, stored: &[u8]) -> Option<i32> {
        let signed = |byte: &u8| i32::from(*byte as i8);
        let both = self.0.iter().zip(stored);
        (self.0.len() == stored.len())
            .then(|| both.map(|(one, other)| signed(one) * signed(other)).sum())
    }
}

/// Vectors from one call, with its cost.
#[derive(Clone, Debug)]
pub(crate) struct EmbeddedTexts {
    /// Digest of the request.
    pub asked: RequestDigest,
    pub model: String,
    pub vectors: Vec<(UnembeddedText, Vector)>,
    pub bill: Bill,
    pub at: Timestamp,
}

/// A record with its memory, or a memory alone, near a vector.
#[derive(Clone, Debug)]
pub(crate) struct NearText {
    pub record: Option<StoredRecord>,
    pub memory: Option<Memory>,
}

/// Returns the newest texts without a vector.
fn unembedded(
    db: &mut Db,
    model: &str,
    namespace: Option<&str>,
    limit: u32,
) -> Result<Vec<UnembeddedText>> {
    let sql = format!(
        "SELECT c.no, {RECORD_COLUMNS} FROM {RECORD_TABLES}
            LEFT JOIN vectors v ON v.model = ?1 AND v.no = c.no
        WHERE v.no IS NULL AND r.current = 1 AND c.state <> 'replaced'
            AND (s.namespace = ?3 OR ?3 IS NULL) ORDER BY c.no DESC LIMIT ?2"
    );
    let by = values![model, limit, namespace];
    let found: Vec<(i64, StoredRecord)> = db.all(&sql, by)?;
    let of_record =
        |(no, it): (i64, StoredRecord)| UnembeddedText::of(no, fields_of_record(&it.record));
    let mut texts: Vec<UnembeddedText> = found.into_iter().map(of_record).collect();
    let sql = "SELECT -m.no, m.body FROM search JOIN memories m ON m.no = -search.rowid
            LEFT JOIN vectors v ON v.model = ?1 AND v.no = search.rowid
        WHERE search.rowid < 0 AND v.no IS NULL AND (m.namespace = ?3 OR ?3 IS NULL)
        ORDER BY m.no DESC LIMIT ?2";
    let found: Vec<(i64, Memory)> = db.all(sql, by)?;
    let with_words = found.into_iter().filter(|(_, memory)| has_own_words(memory));
    texts.extend(with_words.map(|(no, it)| UnembeddedText::of(no, fields_of_memory(&it))));
    Ok(texts)
}

fn known(db: &mut Db, model: &str, text: &UnembeddedText) -> Result<Option<Vector>> {
    let sql = "SELECT vector FROM vectors WHERE text = ?1 AND model = ?2 LIMIT 1";
    Ok(db.first(sql, values![&text.digest(), model])?.map(Vector))
}

fn enter(db: &mut Db, model: &str, vectors: &[(UnembeddedText, Vector)]) -> Result<()> {
    let digests: Vec<Digest> = vectors.iter().map(|(text, _)| text.digest()).collect();
    let mut cells: Vec<Value<'_>> = Vec::with_capacity(vectors.len() * INTO.width);
    for ((text, vector), digest) in vectors.iter().zip(&digests) {
        cells.extend([text.no.into(), model.into(), digest.into(), vector.0.as_slice().into()]);
    }
    if cells.is_empty() { Ok(()) } else { db.insert(INTO, &cells).map(drop) }
}

/// Returns the numbers of a namespace's nearest texts, nearest first.
fn nearest(
    db: &mut Db,
    model: &str,
    vector: &Vector,
    namespace: Option<&str>,
    limit: usize,
) -> Result<Vec<i64>> {
    let of_all = "SELECT no, vector FROM vectors WHERE model = ?1";
    let of_one = "SELECT v.no, v.vector FROM vectors v JOIN records c ON c.no = v.no
            JOIN runs r ON r.no = c.run_no JOIN sessions s ON s.no = r.session_no
        WHERE v.model = ?1 AND s.namespace = ?2
        UNION ALL SELECT v.no, v.vector FROM vectors v JOIN memories m ON m.no = -v.no
        WHERE v.model = ?1 AND v.no < 0 AND m.namespace = ?2";
    let mut near: Vec<(i32, i64)> = Vec::new();
    let add = |row: &mut Columns<'_>| {
        let (no, stored): (i64, Vec<u8>) = row.next()?;
        near.extend(vector.product(&stored).map(|product| (-product, no)));
        Ok(ControlFlow::Continue(()))
    };
    match namespace {
        Some(namespace) => db.each(of_one, values![model, namespace], add)?,
        None => db.each(of_all, values![model], add)?,
    }
    near.sort_unstable();
    Ok(near.into_iter().take(limit).map(|(_, no)| no).collect())
}

/// Returns the texts of `numbers` that match `filter`, in order.
fn texts(db: &mut Db, numbers: &[i64], filter: &SearchFilter) -> Result<Vec<NearText>> {
    let listed =
        |numbers: &[i64]| numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let (of_memories, of_records): (Vec<i64>, Vec<i64>) = numbers.iter().partition(|no| **no < 0);
    let mut found: HashMap<i64, NearText> = HashMap::new();
    let limit = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
    if !of_records.is_empty() {
        let listed = listed(&of_records);
        let lookup = Lookup::numbered("records c", format!("?1 = '' AND c.no IN ({listed})"));
        for (no, memory, stored) in records(db, &lookup, filter, limit)? {
            found.insert(no, NearText { record: Some(stored), memory });
        }
    }
    if !of_memories.is_empty() && filter.is_of_memories() {
        let listed = listed(&of_memories);
        let lookup = Lookup::numbered("", format!("?1 = '' AND search.rowid IN ({listed})"));
        for (no, memory) in memories(db, &lookup, filter, limit)? {
            found.insert(no, NearText { record: None, memory: Some(memory) });
        }
    }
    Ok(numbers.iter().filter_map(|no| found.remove(no)).collect())
}

impl Store {
    /// Returns the newest texts of a namespace, or of all, that `model` has not embedded.
    pub(crate) async fn unembedded_texts(
        &self,
        model: &str,
        namespace: Option<String>,
        limit: u32,
    ) -> StoreResult<Vec<UnembeddedText>> {
        let (model, asked) = (model.to_owned(), model.to_owned());
        let find = move |db: &mut Db| unembedded(db, &asked, namespace.as_deref(), limit);
        let found = self.read("looking for texts without a vector", find).await?;
        if found.is_empty() {
            return Ok(found);
        }
        // The same text may have a vector from another run or another reading of the session.
        self.write("reusing vectors", move |db| {
            let (mut left, mut reused) = (Vec::new(), Vec::new());
            for text in &found {
                match known(db, &model, text)? {
                    Some(vector) => reused.push((text.clone(), vector)),
                    None => left.push(text.clone()),
                }
            }
            enter(db, &model, &reused)?;
            Ok(left)
        })
        .await
    }

    /// Stores the vectors of a call with its bill.
    pub(crate) async fn keep_vectors(&self, embedded: EmbeddedTexts) -> StoreResult<()> {
        self.write("keeping vectors", move |db| {
            let EmbeddedTexts { asked, model, vectors, bill, at } = &embedded;
            write_bill(db, *asked, model, *at, bill)?;
            enter(db, model, vectors)
        })
        .await
    }

    /// Returns the texts nearest to `vector`, nearest first.
    pub(crate) async fn near_texts(
        &self,
        model: &str,
        vector: Vector,
        filter: SearchFilter,
        limit: usize,
    ) -> StoreResult<Vec<NearText>> {
        let model = model.to_owned();
        self.read("searching by vectors", move |db| {
            let near = nearest(db, &model, &vector, filter.namespace.as_deref(), limit)?;
            texts(db, &near, &filter)
        })
        .await
    }
}
