//! What runs printed, kept on disk by the hash of everything that decides about it.

use crate::failure::Failure;
use blake3::Hasher;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// First line of an entry, in front of the hash of what follows.
const MAGIC: &str = "planewise run 1 ";

/// The directory of kept results.
pub struct Kept {
    directory: PathBuf,
    /// Hash of this program: another build may measure something else.
    program: blake3::Hash,
}

/// What is there for a command.
pub enum Entry {
    /// What it printed.
    Whole(serde_json::Value),
    /// Nothing.
    Absent,
    /// A file that was changed or cut short, by its path.
    Damaged(PathBuf),
}

impl Kept {
    /// Opens the directory, creating it.
    ///
    /// # Errors
    /// It cannot be created, or this program cannot be read.
    pub fn open(directory: &Path) -> Result<Kept, Failure> {
        std::fs::create_dir_all(directory)
            .map_err(|error| Failure::output(format!("{}: cannot create: {error}", directory.display())))?;
        let program = std::env::current_exe().and_then(|path| hash_file(&path));
        let program =
            program.map_err(|error| Failure::output(format!("cannot read this program: {error}")))?;
        Ok(Kept { directory: directory.to_owned(), program })
    }

    /// The name of what a command gives: a hash of the program, the words, and the contents of files among them.
    ///
    /// # Errors
    /// A file among the words cannot be read.
    pub fn key(&self, words: &[String]) -> Result<String, Failure> {
        let mut hasher = Hasher::new();
        hasher.update(self.program.as_bytes());
        for word in words {
            hasher.update(&(word.len() as u64).to_le_bytes()).update(word.as_bytes());
            let bare = word.strip_prefix("sim:").unwrap_or(word);
            let candidates = [Some(bare), bare.split_once(':').map(|(file, _)| file)];
            let file = candidates.into_iter().flatten().map(Path::new).find(|path| path.is_file());
            if let Some(path) = file {
                let hash = hash_file(path)
                    .map_err(|error| Failure::usage(format!("{}: cannot read: {error}", path.display())))?;
                hasher.update(hash.as_bytes());
            }
        }
        Ok(hasher.finalize().to_hex().as_str()[..32].to_owned())
    }

    fn path(&self, key: &str) -> PathBuf {
        self.directory.join(format!("{key}.run"))
    }

    /// What a command printed, if it is there and whole.
    pub fn find(&self, key: &str) -> Entry {
        let path = self.path(key);
        match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Entry::Absent,
            Err(_) => Entry::Damaged(path),
            Ok(bytes) => unpack(&bytes).map_or(Entry::Damaged(path), Entry::Whole),
        }
    }

    /// Keeps what a command printed: there is no time at which half of it is there under its name.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn put(&self, key: &str, printed: &[u8]) -> Result<(), Failure> {
        let path = self.path(key);
        let partial = self.directory.join(format!(".{key}.partial"));
        let write = || -> io::Result<()> {
            let packed = zstd::encode_all(printed, 3)?;
            let mut file = File::create(&partial)?;
            writeln!(file, "{MAGIC}{}", blake3::hash(&packed).to_hex())?;
            file.write_all(&packed)?;
            file.sync_all()?;
            std::fs::rename(&partial, &path)
        };
        write().map_err(|error| {
            let _ = std::fs::remove_file(&partial);
            Failure::output(format!(
                "{}: cannot write: {error}; what was kept before is still there, the same command goes on from it",
                path.display()
            ))
        })
    }
}

fn unpack(bytes: &[u8]) -> Option<serde_json::Value> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (head, packed) = (&bytes[..end], &bytes[end + 1..]);
    let hash = std::str::from_utf8(head).ok()?.strip_prefix(MAGIC)?;
    if blake3::hash(packed).to_hex().as_str() != hash {
        return None;
    }
    serde_json::from_slice(&zstd::decode_all(packed).ok()?).ok()
}

fn hash_file(path: &Path) -> io::Result<blake3::Hash> {
    let mut hasher = Hasher::new();
    io::copy(&mut File::open(path)?, &mut hasher)?;
    Ok(hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back_and_damage_is_seen() {
        let directory = tempfile::tempdir().unwrap();
        let kept = Kept::open(directory.path()).unwrap();
        let words = ["run".to_owned(), "--requests".to_owned(), "5".to_owned()];
        let key = kept.key(&words).unwrap();
        assert!(matches!(kept.find(&key), Entry::Absent));
        kept.put(&key, br#"{"runs": [1]}"#).unwrap();
        assert!(matches!(kept.find(&key), Entry::Whole(value) if value["runs"][0] == 1));
        let path = kept.path(&key);
        let whole = std::fs::read(&path).unwrap();
        for cut in [0, 5, 40, whole.len() - 1] {
            std::fs::write(&path, &whole[..cut]).unwrap();
            assert!(matches!(kept.find(&key), Entry::Damaged(_)), "{cut}");
        }
        let mut changed = whole.clone();
        *changed.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &changed).unwrap();
        assert!(matches!(kept.find(&key), Entry::Damaged(_)));
    }

    #[test]
    fn names_depend_on_words_and_on_the_contents_of_files() {
        let directory = tempfile::tempdir().unwrap();
        let kept = Kept::open(directory.path()).unwrap();
        let key = |words: &[&str]| {
            kept.key(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).unwrap()
        };
        assert_ne!(key(&["a", "b"]), key(&["ab"]));
        let file = directory.path().join("x.toml");
        let name = file.display().to_string();
        std::fs::write(&file, "1").unwrap();
        let (plain, target) = (key(&[&name]), key(&[&format!("sim:{name}")]));
        std::fs::write(&file, "2").unwrap();
        assert_ne!(plain, key(&[&name]));
        assert_ne!(target, key(&[&format!("sim:{name}")]));
    }
}
