// What is linked into the runtime of the standalone file, as its LICENSE.md lists it. The packages of the registry have no license file, and
// the runtime does not export a list; whoever changes RUNTIME_VERSION compares this with that file.

export interface RuntimeLibrary {
  name: string;
  /** SPDX expression. */
  license: string;
  /** Where its source and the whole text are. */
  url: string;
  /** Only in files for this system. */
  only?: 'windows';
}

/** The runtime itself. */
export const RUNTIME = { name: 'bun', license: 'MIT', url: 'https://github.com/oven-sh/bun' };

export const RUNTIME_LIBRARIES: readonly RuntimeLibrary[] = [
  { name: 'JavaScriptCore', license: 'LGPL-2.0-or-later', url: 'https://github.com/oven-sh/WebKit' },
  { name: 'boringssl', license: 'OpenSSL AND ISC AND Apache-2.0', url: 'https://boringssl.googlesource.com/boringssl' },
  { name: 'brotli', license: 'MIT', url: 'https://github.com/google/brotli' },
  { name: 'c-ares', license: 'MIT', url: 'https://github.com/c-ares/c-ares' },
  { name: 'highway', license: 'Apache-2.0', url: 'https://github.com/google/highway' },
  { name: 'icu', license: 'Unicode-3.0', url: 'https://github.com/unicode-org/icu' },
  { name: 'libarchive', license: 'BSD-2-Clause', url: 'https://github.com/libarchive/libarchive' },
  { name: 'libbase64', license: 'BSD-2-Clause', url: 'https://github.com/aklomp/base64' },
  { name: 'libdeflate', license: 'MIT', url: 'https://github.com/ebiggers/libdeflate' },
  {
    name: 'libjpeg-turbo',
    license: 'IJG AND BSD-3-Clause AND Zlib',
    url: 'https://github.com/libjpeg-turbo/libjpeg-turbo',
  },
  { name: 'libspng', license: 'BSD-2-Clause', url: 'https://github.com/randy408/libspng' },
  { name: 'libuv', license: 'MIT', url: 'https://github.com/libuv/libuv', only: 'windows' },
  { name: 'libwebp', license: 'BSD-3-Clause', url: 'https://github.com/webmproject/libwebp' },
  { name: 'lol-html', license: 'BSD-3-Clause', url: 'https://github.com/cloudflare/lol-html' },
  { name: 'ls-hpack', license: 'MIT', url: 'https://github.com/litespeedtech/ls-hpack' },
  { name: 'ls-qpack', license: 'MIT', url: 'https://github.com/litespeedtech/ls-qpack' },
  { name: 'lsquic', license: 'MIT AND BSD-3-Clause', url: 'https://github.com/litespeedtech/lsquic' },
  { name: 'mimalloc', license: 'MIT', url: 'https://github.com/microsoft/mimalloc' },
  { name: 'picohttpparser', license: 'MIT', url: 'https://github.com/h2o/picohttpparser' },
  { name: 'simdutf', license: 'Apache-2.0', url: 'https://github.com/simdutf/simdutf' },
  { name: 'tigerbeetle-io', license: 'Apache-2.0', url: 'https://github.com/tigerbeetle/tigerbeetle' },
  { name: 'tinycc', license: 'LGPL-2.1-only', url: 'https://github.com/tinycc/tinycc' },
  { name: 'uSockets', license: 'Apache-2.0', url: 'https://github.com/uNetworking/uSockets' },
  { name: 'uWebSockets', license: 'Apache-2.0', url: 'https://github.com/jarred-sumner/uwebsockets' },
  { name: 'uucode', license: 'MIT', url: 'https://github.com/jacobsandlund/uucode' },
  { name: 'zlib-ng', license: 'Zlib', url: 'https://github.com/zlib-ng/zlib-ng' },
  { name: 'zstd', license: 'BSD-3-Clause', url: 'https://github.com/facebook/zstd' },
];

/** Packages that the runtime has built in for modules of Node. All are under the MIT license. */
export const RUNTIME_POLYFILLS: readonly string[] = [
  'acorn',
  'acorn-walk',
  'assert',
  'browserify-zlib',
  'buffer',
  'constants-browserify',
  'crypto-browserify',
  'domain-browser',
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

/** How the library under the LGPL can be replaced, as its license asks. */
export const RELINK = `JavaScriptCore and tinycc are under the GNU Lesser General Public License. They are linked statically, so you must be able to
replace them. The source of the runtime, with the commit of JavaScriptCore that it uses and the commands that link it again, is at
${RUNTIME.url} (tag bun-v%VERSION%). \`npm run dist\` in this repository takes such a runtime in place of
the one from the registry: put it where node_modules/.cache/rdctl/runtimes has that one.`;
