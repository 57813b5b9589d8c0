#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "common/frames.h"

using namespace hydra;

namespace {

std::string framed(const std::string& frame) {
    const FrameLength length = frame_length(frame);
    return std::string(length.data(), length.size()) + frame;
}

}  // namespace

TEST_CASE("frames are whole, wherever the stream was cut") {
    const std::string all = framed("one") + framed("") + framed(std::string(300, 'x'));
    for (std::size_t cut = 0; cut <= all.size(); ++cut) {
        FrameReader reader;
        std::vector<std::string> frames;
        for (const std::string& part : {all.substr(0, cut), all.substr(cut)}) {
            reader.add(part);
            while (const auto frame = reader.take()) {
                frames.push_back(*frame);
            }
        }
        REQUIRE(frames == std::vector<std::string>{"one", "", std::string(300, 'x')});
    }
}

TEST_CASE("a frame that would be too long is the end") {
    FrameReader reader;
    reader.add(framed("one") + "\xff\xff\xff\xff" + framed("two"));
    CHECK(reader.take() == "one");
    CHECK_FALSE(reader.broken());
    CHECK_FALSE(reader.take());
    CHECK(reader.broken());
    CHECK_FALSE(reader.take());
}
