import { createRequire } from 'node:module';

/** Its ES modules import each other without extensions, which Node refuses. */
const cards: typeof import('adaptivecards') = createRequire(import.meta.url)('adaptivecards/dist/adaptivecards.js');

/** What Microsoft's own parser finds wrong with a card of version 1.4. */
export function cardProblems(card: unknown): string[] {
  const context = new cards.SerializationContext(cards.Versions.v1_4);
  const parsed = new cards.AdaptiveCard();
  parsed.parse(card, context);
  const events = Array.from({ length: context.eventCount }, (_, i) => context.getEventAt(i).message);
  return [...events, ...parsed.validateProperties().validationEvents.map(({ message }) => message)];
}
