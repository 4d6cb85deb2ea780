//! Pages of a Parquet column, checked before the library decodes them.
//!
//! The library trusts the bytes inside a page: corrupt ones make some of its decoders panic. So each page is walked
//! first, and only encodings that can be walked are let through: plain and dictionary, which is what every writer
//! uses unless told otherwise. The walk is over lengths alone and costs little beside decompression.

use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};

/// A column's pages, of which the corrupt ones come out as errors.
pub(super) struct CheckedPages {
    inner: Box<dyn PageReader>,
    physical: Type,
    is_nullable: bool,
    has_dictionary: bool,
}

impl CheckedPages {
    /// Watches over the pages of a flat column.
    pub fn new(inner: Box<dyn PageReader>, physical: Type, is_nullable: bool) -> CheckedPages {
        CheckedPages { inner, physical, is_nullable, has_dictionary: false }
    }

    fn check(&mut self, page: &Page) -> Result<()> {
        let count = page.num_values() as usize;
        match page {
            Page::DictionaryPage { buf, encoding, .. } => {
                // "Plain dictionary" is the old name of a plain dictionary page.
                #[allow(deprecated)]
                if !matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY) {
                    return Err(refused(*encoding));
                }
                self.has_dictionary = true;
                check_plain(buf, self.physical, count)
            }
            Page::DataPage { buf, encoding, def_level_encoding, .. } => {
                if !self.is_nullable {
                    return self.check_values(buf, *encoding, count);
                }
                if *def_level_encoding != Encoding::RLE {
                    return Err(refused(*def_level_encoding));
                }
                let length = buf.first_chunk().map(|length| u32::from_le_bytes(*length) as usize);
                let levels = length.and_then(|length| buf.get(4..)?.split_at_checked(length));
                let (levels, values) = levels.ok_or_else(|| corrupt("levels"))?;
                let present = check_runs(levels, 1, count).ok_or_else(|| corrupt("levels"))?;
                self.check_values(values, *encoding, present)
            }
            Page::DataPageV2 { buf, encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
                let (levels, values) = (*rep_levels_byte_len == 0)
                    .then(|| buf.split_at_checked(*def_levels_byte_len as usize))
                    .flatten()
                    .ok_or_else(|| corrupt("levels"))?;
                let present = if self.is_nullable {
                    check_runs(levels, 1, count).ok_or_else(|| corrupt("levels"))?
                } else {
                    count
                };
                self.check_values(values, *encoding, present)
            }
        }
    }

    fn check_values(&self, values: &[u8], encoding: Encoding, count: usize) -> Result<()> {
        #[allow(deprecated)]
        match encoding {
            Encoding::PLAIN => check_plain(values, self.physical, count),
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                if !self.has_dictionary {
                    return Err(corrupt("dictionary"));
                }
                // The library takes the width from the first byte even where there is nothing to decode.
                let (width, runs) = values.split_first().ok_or_else(|| corrupt("values"))?;
                if *width > 32 || check_runs(runs, *width, count).is_none() {
                    return Err(corrupt("values"));
                }
                Ok(())
            }
            other => Err(refused(other)),
        }
    }
}

#[cold]
fn corrupt(what: &str) -> ParquetError {
    ParquetError::General(format!("corrupt {what} in a page"))
}

#[cold]
fn refused(encoding: Encoding) -> ParquetError {
    ParquetError::General(format!(
        "a page in encoding {encoding}; write it anew with PLAIN or dictionary encoding"
    ))
}

/// Whether `count` plainly encoded values are there.
fn check_plain(mut values: &[u8], physical: Type, count: usize) -> Result<()> {
    let is_whole = match physical {
        Type::BOOLEAN => count.div_ceil(8) <= values.len(),
        Type::INT32 => count.checked_mul(4).is_some_and(|bytes| bytes <= values.len()),
        Type::INT64 => count.checked_mul(8).is_some_and(|bytes| bytes <= values.len()),
        // Each string begins with its length. None of 0 bytes can pass: the loop ends with the page.
        Type::BYTE_ARRAY => (0..count).all(|_| {
            let rest = values
                .split_first_chunk()
                .and_then(|(length, rest)| rest.get(u32::from_le_bytes(*length) as usize..));
            rest.map(|rest| values = rest).is_some()
        }),
        _ => false,
    };
    if is_whole { Ok(()) } else { Err(corrupt("values")) }
}

/// Walks the hybrid of run lengths and bit packing that levels and dictionary indices come in, until it has given
/// `count` values. Returns how many of them are 1 (only meaningful for levels), or `None` when it ends before.
fn check_runs(mut bytes: &[u8], width: u8, count: usize) -> Option<usize> {
    let value_bytes = usize::from(width).div_ceil(8);
    let (mut given, mut ones) = (0, 0);
    while given < count {
        let header = take_varint(&mut bytes)?;
        if header & 1 == 0 {
            let run = ((header >> 1) as usize).min(count - given);
            let (value, rest) = bytes.split_at_checked(value_bytes)?;
            if run == 0 || (width == 1 && value[0] > 1) {
                return None;
            }
            ones += if value == [1] { run } else { 0 };
            (given, bytes) = (given + run, rest);
        } else {
            let groups = (header >> 1) as usize;
            // Writers may leave out the padding of the last group.
            let wanted = groups.saturating_mul(8).min(count - given);
            let (packed, rest) = bytes.split_at(groups.saturating_mul(usize::from(width)).min(bytes.len()));
            if wanted == 0 || packed.len().saturating_mul(8) < wanted.saturating_mul(usize::from(width)) {
                return None;
            }
            if width == 1 {
                ones += (0..wanted).filter(|bit| packed[bit / 8] >> (bit % 8) & 1 == 1).count();
            }
            (given, bytes) = (given + wanted, rest);
        }
    }
    Some(ones)
}

/// A variable-length number of at most 32 bits.
fn take_varint(bytes: &mut &[u8]) -> Option<u32> {
    let mut value = 0u64;
    for shift in [0, 7, 14, 21, 28] {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return u32::try_from(value).ok();
        }
    }
    None
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.inner.get_next_page()?;
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.inner.skip_next_page()
    }
}
