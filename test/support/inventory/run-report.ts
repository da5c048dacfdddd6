import type { ReconcileRequest } from '../../../src/api/inventory/contract/request.ts';

/** Reports for an asynchronous run; resolves to the HTTP status. */
export async function report(
  { callback, auth, run }: ReconcileRequest,
  body: object,
  { url = callback, token = auth.token }: { readonly url?: string; readonly token?: string } = {},
): Promise<number> {
  const { status } = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ run: run.id, ...body }),
  });
  return status;
}
