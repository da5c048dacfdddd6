import assert from 'node:assert/strict';
import { Progress } from '../../../src/client/progress.ts';

describe('the progress of a command', () => {
  /** What the terminal gets, or the pipe without a terminal, while the texts are shown. */
  const shown = (texts: readonly string[], errorColumns: number | undefined, isTerminal = true): string => {
    let output = '';
    const write = (text: string): void => {
      output += text;
    };
    const terminal = { input: false, output: false, error: isTerminal };
    const progress = new Progress({ printError: write, draw: write, terminal, errorColumns });
    for (const text of texts) progress.show(text);
    progress.end();
    return output;
  };
  const erase = '\r\u001b[K';

  it('is one line of a terminal, which it erases at the end', () => {
    assert.equal(shown(['one', 'one', 'two'], 80), `${erase}- one${erase}\\ two${erase}`);
  });

  it('is one line for each change without a terminal', () => {
    assert.equal(shown(['one', 'one', 'two'], undefined, false), 'one\ntwo\n');
  });

  it('shows the whole of a text that the terminal would cut, before the line', () => {
    const text = 'waiting for approvals: 1 of group devs';
    assert.equal(shown(['one', text], 20), `${erase}- one${erase}${text}\n${erase}\\ waiting for appr…${erase}`);
  });

  it('lets no text move the cursor', () => {
    assert.equal(shown(['a\u001b[2Jb'], 80), `${erase}- a?[2Jb${erase}`);
  });
});
