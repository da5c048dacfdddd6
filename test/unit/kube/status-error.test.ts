import assert from 'node:assert/strict';
import { ApiError } from '../../../src/kube/errors.ts';
import { retryAfterMs, successText } from '../../../src/kube/status-error.ts';

describe('the text of an answer', () => {
  const answer = (status: number, body: string, headers = {}) => ({ status, headers, body: Buffer.from(body) });
  const failureOf = (...args: Parameters<typeof answer>): ApiError => {
    try {
      successText(answer(...args));
    } catch (error) {
      if (error instanceof ApiError) return error;
    }
    return assert.fail('no ApiError');
  };

  it('is its body when it is 2xx', () => {
    assert.deepEqual([successText(answer(200, '{}')), successText(answer(204, ''))], ['{}', '']);
  });

  it('is an ApiError of its Status object otherwise', () => {
    const status = JSON.stringify({ reason: 'Conflict', message: 'too late', details: { retryAfterSeconds: 2 } });
    const { code, reason, message, retryAfterMs: delayMs } = failureOf(409, status);
    assert.deepEqual([code, reason, message, delayMs], [409, 'Conflict', '409: too late', 2000]);
  });

  it('is an ApiError of the raw text where there is no Status object', () => {
    const { reason, message, retryAfterMs: delayMs } = failureOf(301, ' moved ', { 'retry-after': '0' });
    assert.deepEqual([reason, message, delayMs], ['', '301: moved', 0]);
  });

  for (const body of ['', 'upstream connect error', '[]', '"text"', 'null', '{"message":{},"reason":7,"details":[]}']) {
    it(`is an ApiError without a reason if it is ${body || 'empty'}`, () => {
      const { code, reason } = failureOf(502, body);
      assert.deepEqual([code, reason], [502, '']);
    });
  }
});

describe('retryAfterMs', () => {
  const nowMs = Date.UTC(2026, 10, 22, 9, 0, 0);
  const cases: [header: string | string[] | undefined, nowMs: number | undefined, expected: number | undefined][] = [
    [undefined, nowMs, undefined],
    ['7', undefined, 7000],
    ['0', undefined, 0],
    ['999999', undefined, 999_999_000],
    ['1000000', undefined, undefined],
    ['-1', nowMs, undefined],
    ['1.5', nowMs, undefined],
    [['7', '8'], nowMs, undefined],
    ['Sun, 22 Nov 2026 09:00:30 GMT', nowMs, 30_000],
    ['Sun, 22 Nov 2026 08:00:00 GMT', nowMs, 0],
    ['Sun, 22 Nov 2026 09:00:30 GMT', undefined, undefined],
  ];
  for (const [header, at, expected] of cases) {
    it(`is ${expected} for ${JSON.stringify(header)}${at === undefined ? ' without a wall clock' : ''}`, () =>
      assert.equal(retryAfterMs(header, at), expected));
  }
});
