import { expect, test } from 'vitest';
import { basicCredentials } from '../../src/api/basic-credentials.ts';

const credentials = btoa('user:pass:word');
const found = (header: string | undefined) => {
  const given = basicCredentials(header);
  return given && [String(given.user), String(given.password)];
};

test.each([
  `Basic ${credentials}`,
  `basic   ${credentials}`,
  ` BASIC ${credentials} `,
  `Basic ${credentials} trailing`,
  `Basic ${credentials}\ttrailing words`,
])('%j names user and password', (header) => {
  expect(found(header)).toEqual(['user', 'pass:word']);
});

test.each([
  undefined,
  '',
  'Basic',
  'Basic ',
  `Basic trailing ${credentials}`,
  `Basic${credentials}`,
  `Bearer ${credentials}`,
  credentials,
])('%j names nobody', (header) => {
  expect(found(header)).toBeUndefined();
});
