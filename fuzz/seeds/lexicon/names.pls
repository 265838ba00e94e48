<?xml version="1.0" encoding="UTF-8"?>
<lexicon version="1.0" xmlns="http://www.w3.org/2005/01/pronunciation-lexicon" alphabet="ipa" xml:lang="en-US">
  <metadata/>
  <lexeme role="noun"><grapheme>Qorvex</grapheme><phoneme prefer="true">ˈkɔːrvɛks</phoneme></lexeme>
  <lexeme><grapheme>AT&amp;T</grapheme><alias>a t and t</alias><example>x</example></lexeme>
  <lexeme><grapheme>SQL</grapheme><phoneme alphabet="x-arpabet">S IY1 K W AH0 L</phoneme></lexeme>
</lexicon>
