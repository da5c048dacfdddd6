import { parseAccessCommand, renderAccessCommand } from '../policy/access-command.ts';
import type { Violation } from '../policy/policy.ts';
import type { PodView } from '../stores/views.ts';

/** What the requester is told to type; the refusal says what of the template does not fit this pod. */
export function renderAccessMessage(
  accessCommand: string,
  pod: PodView,
): { readonly text: string } | { readonly refusal: Violation } {
  const parsed = parseAccessCommand(accessCommand);
  return 'refusal' in parsed ? parsed : renderAccessCommand(parsed.command, pod);
}
