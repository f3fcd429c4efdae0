// What is linked into the runtime of the standalone file: what its LICENSE.md lists, and what `process.versions` of it names besides. The
// packages of the registry have no license file. Whoever changes RUNTIME_VERSION compares this with both, and the texts with their sources.

export interface RuntimeLibrary {
  name: string;
  /** SPDX expression. */
  license: string;
  /** Where its source is. */
  url: string;
  /** Lines of notice; those that are in a text of its own are not repeated. */
  copyright: readonly string[];
  /** License texts: names of files in `license-texts/`, or LICENSE, which is the Apache License. */
  texts: readonly string[];
  /** Where the notice or the text may differ from that of the version inside, or is missing. */
  note?: string;
  /** Only in files for this system. */
  only?: 'windows';
}

/** The runtime itself. `revision` is what the runtime says of itself. */
export const RUNTIME = {
  name: 'bun',
  license: 'MIT',
  url: 'https://github.com/oven-sh/bun',
  revision: 'a7733435cf40429e3b35c36072769df2052b80f1',
  copyright: ['Copyright (c) 2022 BUN'],
  texts: ['MIT.txt'],
} as const;

/** Commits of the libraries under the LGPL, as `process.versions` has them. */
export const LGPL_COMMITS = {
  webkit: 'd6375c72affe0f70222cdcb45012b10f0bf3a9d5',
  tinycc: '05f0fafaa3be31e31d7b4b5c17dc60f62c991171',
} as const;

const OF_DEBIAN =
  'Notices and texts are those that Debian 12 has for this library; the version inside may have others.';

export const RUNTIME_LIBRARIES: readonly RuntimeLibrary[] = [
  {
    name: 'JavaScriptCore',
    license: 'LGPL-2.0-or-later',
    url: 'https://github.com/oven-sh/WebKit',
    copyright: [],
    texts: ['LGPL-2.0.txt', 'LGPL-2.1.txt', 'JavaScriptCore.txt', 'MPL-2.0.txt', 'LICENSE'],
    note: `Files of it are under licenses of their own, which follow. ${OF_DEBIAN}`,
  },
  {
    name: 'boringssl',
    license: 'OpenSSL AND ISC AND MIT AND BSD-3-Clause AND Apache-2.0',
    url: 'https://boringssl.googlesource.com/boringssl',
    copyright: [],
    texts: ['boringssl.txt', 'LICENSE'],
    note: OF_DEBIAN,
  },
  {
    name: 'brotli',
    license: 'MIT',
    url: 'https://github.com/google/brotli',
    copyright: ['Copyright (c) 2009, 2010, 2013-2016 by the Brotli Authors.'],
    texts: ['MIT.txt'],
  },
  { name: 'c-ares', license: 'MIT', url: 'https://github.com/c-ares/c-ares', copyright: [], texts: ['c-ares.txt'] },
  {
    name: 'HdrHistogram_c',
    license: 'BSD-2-Clause OR CC0-1.0',
    url: 'https://github.com/HdrHistogram/HdrHistogram_c',
    copyright: [],
    texts: ['HdrHistogram.txt'],
  },
  {
    name: 'highway',
    license: 'Apache-2.0',
    url: 'https://github.com/google/highway',
    copyright: ['Copyright 2019-2022 Google LLC'],
    texts: ['LICENSE'],
  },
  { name: 'icu', license: 'Unicode-3.0', url: 'https://github.com/unicode-org/icu', copyright: [], texts: ['icu.txt'] },
  {
    name: 'libarchive',
    license: 'BSD-2-Clause',
    url: 'https://github.com/libarchive/libarchive',
    copyright: [],
    texts: ['libarchive.txt', 'LICENSE'],
    note: `Files of it are under licenses of their own, which follow. ${OF_DEBIAN}`,
  },
  {
    name: 'libbase64',
    license: 'BSD-2-Clause',
    url: 'https://github.com/aklomp/base64',
    copyright: [
      'Copyright (c) 2005-2007, Nick Galbreath',
      'Copyright (c) 2015-2017, Wojciech Mula',
      'Copyright (c) 2016-2017, Matthieu Darbois',
      'Copyright (c) 2013-2022, Alfred Klomp',
      'All rights reserved.',
    ],
    texts: ['BSD-2-Clause.txt'],
  },
  {
    name: 'libc++abi',
    license: 'Apache-2.0 WITH LLVM-exception',
    url: 'https://github.com/llvm/llvm-project',
    copyright: ['Copyright 2003-2017 University of Illinois at Urbana-Champaign.'],
    texts: ['LLVM-exception.txt', 'LICENSE'],
    note: 'Its fallback for __cxa_thread_atexit alone is inside.',
  },
  {
    name: 'libdeflate',
    license: 'MIT',
    url: 'https://github.com/ebiggers/libdeflate',
    copyright: ['Copyright 2016, 2018, Eric Biggers', 'Copyright 2017, Jun He (lib/arm/crc32_impl.h)'],
    texts: ['MIT.txt'],
    note: OF_DEBIAN,
  },
  {
    name: 'libjpeg-turbo',
    license: 'IJG AND BSD-3-Clause AND Zlib AND NTP',
    url: 'https://github.com/libjpeg-turbo/libjpeg-turbo',
    copyright: [],
    texts: ['libjpeg-turbo.txt'],
    note: `This software is based in part on the work of the Independent JPEG Group. ${OF_DEBIAN}`,
  },
  {
    name: 'libspng',
    license: 'BSD-2-Clause AND libpng-2.0',
    url: 'https://github.com/randy408/libspng',
    copyright: [
      'Copyright (c) 2018-2022, Randy <randy408@protonmail.com>',
      'Copyright (c) 1995-2019 The PNG Reference Library Authors',
      'Copyright (c) 2018-2019 Cosmin Truta',
      'Copyright (c) 2000-2002, 2004, 2006-2018 Glenn Randers-Pehrson',
      'Copyright (c) 1996-1997 Andreas Dilger',
      'Copyright (c) 1995-1996 Guy Eric Schalnat, Group 42, Inc',
      'Copyright (c) 2017-2018 Arm Holdings',
    ],
    texts: ['BSD-2-Clause.txt', 'libpng-2.0.txt'],
  },
  {
    name: 'libuv',
    license: 'MIT',
    url: 'https://github.com/libuv/libuv',
    copyright: [],
    texts: ['libuv.txt'],
    only: 'windows',
  },
  {
    name: 'libwebp',
    license: 'BSD-3-Clause',
    url: 'https://github.com/webmproject/libwebp',
    copyright: ['Copyright (c) 2010, Google Inc. All rights reserved.'],
    texts: ['libwebp.txt'],
  },
  {
    name: 'llhttp',
    license: 'MIT',
    url: 'https://github.com/nodejs/llhttp',
    copyright: ['Copyright Fedor Indutny, 2018.'],
    texts: ['MIT.txt'],
  },
  {
    name: 'lol-html',
    license: 'BSD-2-Clause',
    url: 'https://github.com/cloudflare/lol-html',
    copyright: ['Copyright (C) 2019, Cloudflare, Inc.', 'Copyright (C) 2019, Ivan Nikulin', 'All rights reserved.'],
    texts: ['BSD-2-Clause.txt'],
    note: 'The runtime names BSD 3-Clause; the LICENSE file of the library has these two clauses.',
  },
  {
    name: 'ls-hpack',
    license: 'MIT',
    url: 'https://github.com/litespeedtech/ls-hpack',
    copyright: ['Copyright (c) 2018 LiteSpeed Technologies Inc'],
    texts: ['MIT.txt'],
  },
  {
    name: 'ls-qpack',
    license: 'MIT',
    url: 'https://github.com/litespeedtech/ls-qpack',
    copyright: ['Copyright (c) 2018 - 2021 LiteSpeed Technologies Inc'],
    texts: ['MIT.txt'],
  },
  {
    name: 'lsquic',
    license: 'MIT AND BSD-3-Clause',
    url: 'https://github.com/litespeedtech/lsquic',
    copyright: [
      'Copyright (c) 2017 - 2018 LiteSpeed Technologies Inc',
      'Copyright 2015 The Chromium Authors. All rights reserved. (parts that are based on proto-quic)',
    ],
    texts: ['MIT.txt', 'lsquic-chromium.txt'],
  },
  {
    name: 'mimalloc',
    license: 'MIT',
    url: 'https://github.com/microsoft/mimalloc',
    copyright: ['Copyright (c) 2018-2023 Microsoft Corporation, Daan Leijen'],
    texts: ['MIT.txt'],
  },
  {
    name: 'picohttpparser',
    license: 'MIT',
    url: 'https://github.com/h2o/picohttpparser',
    copyright: ['Copyright (c) 2009-2014 Kazuho Oku, Tokuhiro Matsuno, Daisuke Murase, Shigeo Mitsunari'],
    texts: ['MIT.txt'],
    note: 'Under the MIT License or the Perl license; here under the MIT License.',
  },
  {
    name: 'simdutf',
    license: 'Apache-2.0 OR MIT',
    url: 'https://github.com/simdutf/simdutf',
    copyright: ['Copyright 2021 The simdutf authors'],
    texts: ['MIT.txt', 'LICENSE'],
  },
  {
    name: 'sqlite',
    license: 'blessing',
    url: 'https://sqlite.org',
    copyright: ['D. Richard Hipp; in the public domain'],
    texts: [],
    note: 'The author disclaims copyright to its source, so there is no license text.',
  },
  {
    name: 'tigerbeetle-io',
    license: 'Apache-2.0',
    url: 'https://github.com/tigerbeetle/tigerbeetle',
    copyright: ['Copyright the TigerBeetle authors'],
    texts: ['LICENSE'],
    note: 'A copyright line of its own was not available.',
  },
  {
    name: 'tinycc',
    license: 'LGPL-2.1-or-later',
    url: 'https://github.com/oven-sh/tinycc',
    copyright: [
      'Copyright (c) 2001-2004 Fabrice Bellard',
      'Copyright (c) 1988, 1997 Free Software Foundation, Inc.',
      'Copyright (c) 2003 Daniel Glöckner',
      'Copyright (c) 2003-2004 TK',
      'Copyright (c) 2005-2007 grischka',
      'Copyright (c) 2007 Timppa',
      'Copyright (c) 2008 Shinichiro Hamaji',
      'Copyright (c) 2009 Frédéric Feret',
      "Copyright (c) 2012 Thomas Preud'homme",
    ],
    texts: ['LGPL-2.1.txt'],
    note: OF_DEBIAN,
  },
  {
    name: 'uSockets',
    license: 'Apache-2.0',
    url: 'https://github.com/uNetworking/uSockets',
    copyright: ['Authored by Alex Hultman, 2018-2019. Intellectual property of third-party.'],
    texts: ['LICENSE'],
  },
  {
    name: 'uWebSockets',
    license: 'Apache-2.0',
    url: 'https://github.com/jarred-sumner/uwebsockets',
    copyright: ['Authored by Alex Hultman, 2018-2020. Intellectual property of third-party.'],
    texts: ['LICENSE'],
  },
  {
    name: 'uucode',
    license: 'MIT',
    url: 'https://github.com/jacobsandlund/uucode',
    copyright: ['Copyright the uucode authors'],
    texts: ['MIT.txt'],
    note: 'A copyright line of its own was not available.',
  },
  {
    name: 'zlib-ng',
    license: 'Zlib',
    url: 'https://github.com/zlib-ng/zlib-ng',
    copyright: ['(C) 1995-2025 Jean-loup Gailly and Mark Adler'],
    texts: ['Zlib.txt'],
  },
  {
    name: 'zstd',
    license: 'BSD-3-Clause',
    url: 'https://github.com/facebook/zstd',
    copyright: ['Copyright (c) Meta Platforms, Inc. and affiliates. All rights reserved.'],
    texts: ['zstd.txt'],
    note: 'Under the BSD License or the GPL, version 2; here under the BSD License.',
  },
];
