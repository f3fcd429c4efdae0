/**
 * Parses server-sent events (WHATWG HTML, 9.2.6) from chunks, and calls back with each event's data. Names and ids are
 * ignored.
 */
export function eventReader(onData: (data: string) => void): (part: Buffer) => void {
  const decoder = new TextDecoder();
  let rest = '';
  let data: string[] = [];
  return (part) => {
    const lines = (rest + decoder.decode(part, { stream: true })).split(/\r?\n/);
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
      if (line !== '' || data.length === 0) continue;
      onData(data.join('\n'));
      data = [];
    }
  };
}
