export function RequestDetails() {
  return <h1>RequestDetails</h1>;
}
