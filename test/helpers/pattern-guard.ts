import { chai } from 'vitest';

/**
 * Makes `toMatchObject` fail for a pattern, which has no members to compare, so that any value would match. Use
 * `expect.stringMatching(PATTERN)` for texts. The error about a program's outcome says what it wrote to stderr.
 */
export function guardPatterns(): void {
  chai.use((_, { overwriteMethod }) => {
    overwriteMethod(
      chai.Assertion.prototype,
      'toMatchObject',
      (method: (expected: unknown) => void) =>
        function (this: unknown, expected: unknown) {
          const path = patternIn(expected);
          if (path !== undefined)
            throw new Error(`toMatchObject compares nothing at ${path || 'the top'}: use expect.stringMatching`);
          try {
            method.call(this, expected);
          } catch (error) {
            throw withStderr(error, chai.util.flag(this as object, 'object'));
          }
        },
    );
  });
}

/** Members that match are left out of the difference, and this one often says why the others do not. */
function withStderr(error: unknown, outcome: { err?: unknown } | null | undefined): unknown {
  const err = outcome?.err;
  if (error instanceof Error && typeof err === 'string' && err !== '') error.message += `\nstderr: ${err}`;
  return error;
}

/** The path to a pattern, `.name[0]`; asymmetric matchers (`expect.any`) are not searched. */
function patternIn(value: unknown, path = ''): string | undefined {
  if (value instanceof RegExp) return path;
  if (typeof value !== 'object' || value === null || 'asymmetricMatch' in value) return undefined;
  for (const [name, member] of Object.entries(value)) {
    const found = patternIn(member, Array.isArray(value) ? `${path}[${name}]` : `${path}.${name}`);
    if (found !== undefined) return found;
  }
  return undefined;
}
