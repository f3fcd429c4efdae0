const SPELLING = /^v?(\d{1,9}\.\d{1,9}\.\d{1,9})(?:\+k3s\d+)?$/;
const PLAIN = /^\d{1,9}\.\d{1,9}\.\d{1,9}(?:-[0-9A-Za-z][0-9A-Za-z.-]{0,63})?$/;

/** Turns `v1.30.2`, `1.30.2+k3s1` and `v1.30.2+k3s1` into `1.30.2`; other strings are unchanged. */
export function canonicalKubernetesVersion(text: string): string {
  return SPELLING.exec(text)?.[1] ?? text;
}

/** True for `X.Y.Z`, with or without a pre-release, whether or not it is available. */
export function isKubernetesVersion(text: string): boolean {
  return PLAIN.test(text);
}
