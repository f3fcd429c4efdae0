const SPELLING = /^v?(\d{1,9}\.\d{1,9}\.\d{1,9})(?:\+k3s\d+)?$/;
const PLAIN = /^\d{1,9}\.\d{1,9}\.\d{1,9}(?:-[0-9A-Za-z][0-9A-Za-z.-]{0,63})?$/;

/** `v1.30.2`, `1.30.2+k3s1` and `v1.30.2+k3s1` become `1.30.2`; every other text stays as it is. */
export function canonicalKubernetesVersion(text: string): string {
  return SPELLING.exec(text)?.[1] ?? text;
}

/** True for `X.Y.Z`, also with a pre-release; whether that version is offered is another question. */
export function isKubernetesVersion(text: string): boolean {
  return PLAIN.test(text);
}
