/**
 * Runs one check for each named case. For tables that are generated, such as one case per setting: the first failure has
 * the name of its case in front, and an empty table is a failure.
 */
export async function checkEach<Value>(
  cases: Iterable<readonly [name: string, value: Value]>,
  check: (value: Value, name: string) => void | Promise<void>,
): Promise<void> {
  let count = 0;
  for (const [name, value] of cases) {
    count += 1;
    try {
      await check(value, name);
    } catch (error) {
      if (error instanceof Error) error.message = `${name}: ${error.message}`;
      throw error;
    }
  }
  if (count === 0) throw new Error('there are no cases');
}
