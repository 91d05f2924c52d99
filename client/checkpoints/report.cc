#include "checkpoints/report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "checkpoints/json.h"
#include "files/text.h"

namespace quantd::checkpoints {
namespace {

std::string Quoted(absl::string_view text) {
  return checkpoints::Json(text).dump(-1, ' ', false, checkpoints::Json::error_handler_t::replace);
}

}  // namespace

std::string Report::Text() const {
  std::string text;
  for (const ReportedTensor& tensor : tensors) {
    const std::string fate = !tensor.layout.empty()
                                 ? tensor.layout
                                 : absl::StrCat(tensor.left_out ? "left out: " : "copied: ",
                                                cli::Printable(tensor.reason));
    absl::StrAppend(&text, cli::Printable(tensor.name), "  ", tensor.dtype, " ",
                    ShapeString(tensor.shape), "  ", fate, "  ");
    absl::StrAppend(&text, tensor.bytes_before, " -> ", tensor.bytes_after, "\n");
  }
  for (const std::string& file : foreign) {
    absl::StrAppend(&text, cli::Printable(file), "  left out: the model does not list it\n");
  }
  absl::StrAppend(&text, "total  ", tensors.size(), " tensors  ", bytes_before, " -> ", bytes_after,
                  "\n");
  return text;
}

std::string Report::Json(absl::string_view more) const {
  // One tensor at a time: as a document of a JSON library it would take several times the memory.
  std::string text = absl::StrCat("{\n", more, "  \"tensors\": [");
  absl::string_view comma = "\n";
  for (const ReportedTensor& tensor : tensors) {
    const bool converted = !tensor.layout.empty();
    absl::StrAppend(&text, comma, "    {\"name\": ", Quoted(tensor.name),
                    ", \"dtype\": ", Quoted(tensor.dtype), ", \"shape\": [",
                    absl::StrJoin(tensor.shape, ", "), "]");
    absl::StrAppend(&text,
                    converted         ? ", \"layout\": "
                    : tensor.left_out ? ", \"left_out\": "
                                      : ", \"copied\": ",
                    Quoted(converted ? tensor.layout : tensor.reason));
    absl::StrAppend(&text, ", \"bytes_before\": ", tensor.bytes_before,
                    ", \"bytes_after\": ", tensor.bytes_after, "}");
    comma = ",\n";
  }
  absl::StrAppend(&text, tensors.empty() ? "" : "\n  ", "],\n");
  if (!foreign.empty()) {
    const auto quoted = [](std::string* to, const std::string& file) { *to += Quoted(file); };
    absl::StrAppend(&text, "  \"files_left_out\": [", absl::StrJoin(foreign, ", ", quoted), "],\n");
  }
  absl::StrAppend(&text, "  \"bytes_before\": ", bytes_before,
                  ",\n  \"bytes_after\": ", bytes_after, "\n}\n");
  return text;
}

}  // namespace quantd::checkpoints
