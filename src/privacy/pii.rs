//! Personal data, by pattern.

/// A kind of personal data that the gate masks.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Pii {
    /// `<IBAN>`
    Iban,
    /// `<CREDIT_CARD>`
    CreditCard,
    /// `<SSN>`
    Ssn,
    /// `<TR_PHONE>`
    TrPhone,
    /// `<TC_KIMLIK>`
    TcKimlik,
    /// `<PHONE>`
    Phone,
    /// `<EMAIL>`
    Email,
    /// `<ADDRESS>`
    Address,
}
