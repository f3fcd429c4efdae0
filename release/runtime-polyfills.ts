/** A package that the runtime has built in for a module of Node. */
export interface RuntimePolyfill {
  name: string;
  /** SPDX expression. */
  license: string;
}

const MIT = [
  'acorn',
  'acorn-walk',
  'assert',
  'browserify-zlib',
  'buffer',
  'constants-browserify',
  'crypto-browserify',
  'events',
  'https-browserify',
  'os-browserify',
  'path-browserify',
  'process',
  'punycode',
  'querystring-es3',
  'stream-browserify',
  'stream-http',
  'string_decoder',
  'timers-browserify',
  'tty-browserify',
  'url',
  'util',
  'vm-browserify',
];

/** The list of the runtime, which says MIT for all of them. The releases of domain-browser that it uses are under another license. */
export const RUNTIME_POLYFILLS: readonly RuntimePolyfill[] = [
  ...MIT.map((name) => ({ name, license: 'MIT' })),
  { name: 'domain-browser', license: 'Artistic-2.0' },
];

/** Their texts, and those of the packages that they need; made of the packages of the registry. */
export const POLYFILL_TEXTS = 'polyfills.txt';
