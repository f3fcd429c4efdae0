import fc from 'fast-check';

/** Characters and words with a meaning in some format, a terminal, Unicode or JavaScript. */
const AWKWARD = [
  ...'"\'\\[]=;:,@-#%~/{}*<>&`$|^!? \n\r\t\u007f\u0085\u00a0\u200b\u2028\u2029\u202e\u2066\ufeff\ufffdéßİıſK中א😀\u{10ffff}\u{1fffe}',
  ...'\\\\ \\" "= [- \r\n e\u0301 עברית 👨‍👩‍👧 &amp; &#0; ]]> <!-- --> <![CDATA[ <?xml </string> %PATH% $(a) -0 1e3 0 1'.split(
    ' ',
  ),
  ...'__proto__ constructor toString (Default) null true dword:1 hex(7):00 REG_SZ [HKEY_LOCAL_MACHINE\\SOFTWARE]'.split(
    ' ',
  ),
  ...['Windows Registry Editor Version 5.00', '    a    REG_DWORD    0x1', '  '],
];

/** What at least one format cannot hold. */
const IMPOSSIBLE = [
  '\0',
  '\u0001',
  '\b',
  '\u000b',
  '\f',
  '\u001b',
  '\u001f',
  '\ufffe',
  '\uffff',
  '\ud800',
  '\udc00',
  '\udbff a',
];

/** Text that every format can hold as a value: no NUL, nothing that XML forbids. */
export function hostileText(): fc.Arbitrary<string> {
  return joined(fc.oneof(fc.constantFrom(...AWKWARD), fc.string({ unit: 'grapheme', maxLength: 3 }))).filter(isXmlText);
}

/** Any text, sometimes with what some formats cannot hold. */
export function anyText(): fc.Arbitrary<string> {
  const pieces = fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...AWKWARD) },
    { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 4 }) },
    { weight: 1, arbitrary: fc.constantFrom(...IMPOSSIBLE) },
  );
  return fc.oneof({ weight: 6, arbitrary: hostileText() }, { weight: 1, arbitrary: joined(pieces) });
}

function joined(piece: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.array(piece, { maxLength: 5 }).map((pieces) => pieces.join(''));
}

/** Whether XML 1.0 allows every character; it excludes most control characters, unpaired surrogates and two others. */
export function isXmlText(text: string): boolean {
  return Array.from(text, (sign) => sign.codePointAt(0) ?? 0).every(
    (code) =>
      code === 0x9 ||
      code === 0xa ||
      code === 0xd ||
      (code >= 0x20 && code <= 0xd7ff) ||
      (code >= 0xe000 && code <= 0xfffd) ||
      code > 0xffff,
  );
}
