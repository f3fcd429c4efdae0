import semver from 'semver';

/**
 * The tag that an installation without one means: the highest semantic version (`1.2.3`, `v1.2.3`, `v.1.2.3`), else the tag with
 * the highest number in it, else `latest`. Undefined when there is none of these.
 */
export function chooseTag(tags: readonly string[]): string | undefined {
  const versions = tags.flatMap((tag) => {
    const version = semver.parse(tag.replace(/^v\.?/, ''));
    return version ? [{ tag, version }] : [];
  });
  const newest = versions.reduce<(typeof versions)[number] | undefined>(
    (best, each) => (best && semver.compare(best.version, each.version) >= 0 ? best : each),
    undefined,
  );
  if (newest) return newest.tag;
  const numbered = tags.flatMap((tag) => {
    const numbers = (tag.match(/\d+/g) ?? []).map(Number);
    return numbers.length === 0 ? [] : [{ tag, number: Math.max(...numbers) }];
  });
  const highest = numbered.reduce<(typeof numbered)[number] | undefined>(
    (best, each) => (best && best.number >= each.number ? best : each),
    undefined,
  );
  return highest?.tag ?? (tags.includes('latest') ? 'latest' : undefined);
}
