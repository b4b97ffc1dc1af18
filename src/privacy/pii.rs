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

impl std::str::FromStr for Pii {
    type Err = String;

    fn from_str(text: &str) -> Result<Pii, String> {
        match text {
            "iban" => Ok(Pii::Iban),
            "credit_card" => Ok(Pii::CreditCard),
            "ssn" => Ok(Pii::Ssn),
            "tr_phone" => Ok(Pii::TrPhone),
            "tc_kimlik" => Ok(Pii::TcKimlik),
            "phone" => Ok(Pii::Phone),
            "email" => Ok(Pii::Email),
            "address" => Ok(Pii::Address),
            _ => Err(format!(
                "unknown pattern `{text}`: expected iban, credit_card, ssn, tr_phone, tc_kimlik, phone, email or address"
            )),
        }
    }
}
