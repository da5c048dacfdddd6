/** The Status with which the API server passes on the denial of a webhook of drawbridge. */
export function webhookDenial(status: number, code: string, message: string, field?: string) {
  const text = `${code}: ${message}`;
  const cause = { reason: code, message: text, ...(field === undefined ? {} : { field }) };
  return {
    kind: 'Status',
    code: status,
    message: `admission webhook "x" denied the request: ${text}`,
    details: { causes: [cause] },
  };
}
