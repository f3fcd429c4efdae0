/**
 * The sum of a file in the output of `sha256sum`: 64 lower-case digits. Undefined when no line names exactly that file, and when two
 * lines say different things about it.
 */
export function sumIn(text: string, file: string): string | undefined {
  const sums = text.split('\n').flatMap((line) => {
    const match = /^([0-9a-fA-F]{64}) [ *](.+?)\r?$/.exec(line);
    return match?.[2] === file && match[1] !== undefined ? [match[1].toLowerCase()] : [];
  });
  return new Set(sums).size === 1 ? sums[0] : undefined;
}
