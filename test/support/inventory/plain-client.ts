import { readOutcome } from '../../../src/api/inventory/contract/outcome.ts';
import { readAccepted } from '../../../src/api/inventory/contract/report.ts';
import { type ReconcileRequest, reconcilePath } from '../../../src/api/inventory/contract/request.ts';
import type { Reply } from '../../../src/inventory/ports/component-client.ts';
import { parseJson } from '../../../src/kit/safe-json.ts';

/** The answer as it came. */
export interface PlainAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** Asks a component over HTTP, whatever it is asked and by whom. */
export async function ask(url: string, body: unknown, token: string | undefined): Promise<PlainAnswer> {
  const answer = await fetch(`${url}${reconcilePath}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  });
  const bytes = new Uint8Array(await answer.arrayBuffer());
  return { status: answer.status, body: bytes.length === 0 ? undefined : parseJson(bytes) };
}

/** What the answer means by the contract; rejects for one that it does not know. */
export async function reply(url: string, request: ReconcileRequest, token: string): Promise<Reply> {
  const { status, body } = await ask(url, request, token);
  if (status === 202) {
    const accepted = readAccepted(body);
    if (!accepted.ok) throw new Error(JSON.stringify(accepted.errors));
    const { leaseSeconds } = accepted.value;
    return { kind: 'accepted', leaseMs: leaseSeconds === undefined ? undefined : leaseSeconds * 1000 };
  }
  if (status === 429 || status === 503) return { kind: 'notAccepted', code: 'Busy', message: String(status) };
  if (status !== 200) return { kind: 'broken', code: 'UnexpectedStatus', message: JSON.stringify(body) };
  const read = readOutcome(body, { id: request.run.id, operation: request.operation });
  if (!read.ok) throw new Error(`${JSON.stringify(read.errors)} in ${JSON.stringify(body)}`);
  return { kind: 'outcome', outcome: read.value };
}
