// The batch of a process of clients, which its relay joins with those of other processes. Pure. (Python:
// hydra/wire/report_batch.py.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/batch_columns.h"

namespace hydra {

class BatchPart {
  public:
    // Throws ProtocolError if the lengths of the columns do not fit together, or if a number is impossible:
    // the controller would refuse the joined batch, with the reports of all its clients.
    BatchPart(Ids ids, const std::vector<ColumnCount>& columns, std::string payload);

    [[nodiscard]] const Ids& ids() const { return ids_; }
    // The bytes in a joined batch, without the sums of the histograms; a few too many.
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

    // A column is given by its place in the order of all columns.
    // The items of each client in a column; empty if the batch lacks them.
    [[nodiscard]] std::vector<std::string_view> rows(std::size_t column) const;
    // The numbers of a column; none if the batch lacks the column.
    [[nodiscard]] std::vector<std::int64_t> numbers(std::size_t column) const;

  private:
    [[nodiscard]] std::string_view items(std::size_t column) const;
    [[nodiscard]] std::size_t total(std::size_t column) const;
    void check_lengths() const;
    void check_numbers() const;
    void check_parts() const;
    void check_bits() const;

    Ids ids_;
    std::string payload_;
    std::vector<std::uint32_t> places_;  // begin and end of each column in the payload
    std::size_t bytes_ = 0;
};

// One batch with the reports of all these, of which no two have the same client: the batch that BatchBuilder
// makes of all reports.
BatchColumns join(std::span<const BatchPart> parts);

}  // namespace hydra
